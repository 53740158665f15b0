import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { startPlatform } from '../../support/platform.ts';
import type { TestPlatform } from '../../support/platform.ts';
import { openWindow, startBrowser, testDomain } from './browser.ts';
import { emptyTeam } from './empty-team.ts';
import type { Window } from './browser.ts';

type Started = AsyncDisposable & { platform: TestPlatform; browser: Browser };

/** A platform, and a window in which the operator is signed in. `options`: those of the SDK. */
export type SignedIn = Started & {
  window: Window;
  page: Page;
  options: { apiKey: string; apiUrl: string; sandboxUrl: string; domain: string };
};

/** Starts a separate platform and a browser, and signs in with the link that the start prints. */
export async function startSignedIn(): Promise<SignedIn> {
  const started = await startBoth({});
  try {
    return { ...started, ...(await signIn(started, started.platform.ready.dashboard ?? '')) };
  } catch (error) {
    await started[Symbol.asyncDispose]();
    throw error;
  }
}

/** What the files of this process share, and how many of them have not ended yet. */
const shared: { started?: Promise<Started>; files: number } = { files: 0 };

/**
 * Registers a file that uses the platform and the browser shared by all files of its process, because starting them
 * takes longer than most tests. Answers a function to begin with: it empties the team, and signs in in a window of its
 * own. The last file ends both.
 */
export function shareSignedIn(): () => Promise<SignedIn> {
  shared.files++;
  const leave = async () => {
    if (--shared.files > 0) return;
    const started = await shared.started?.catch(() => undefined);
    delete shared.started;
    await started?.[Symbol.asyncDispose]();
  };
  return async () => {
    try {
      const started = await (shared.started ??= startBoth({ ATOLL_DOMAIN: testDomain, ATOLL_TLS_PORT: '0' }));
      const { platform, browser } = started;
      await emptyTeam(platform);
      return {
        ...started,
        ...(await signIn(started, await newLink(platform))),
        async [Symbol.asyncDispose]() {
          for (const context of browser.contexts()) await context.close();
          await leave();
        },
      };
    } catch (error) {
      await leave();
      throw error;
    }
  };
}

async function startBoth(env: Record<string, string>): Promise<Started> {
  const platform = await startPlatform(env);
  try {
    const browser = await startBrowser();
    const dispose = async () => {
      await browser.close();
      await platform[Symbol.asyncDispose]();
    };
    return { platform, browser, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await platform[Symbol.asyncDispose]();
    throw error;
  }
}

/** A sign-in link for the operator, as `atoll dashboard` prints one. */
async function newLink({ ready }: TestPlatform): Promise<string> {
  const token = readFileSync(join(ready.dataDir, 'admin-token'), 'utf8').trim();
  const headers = { 'X-Admin-Token': token };
  const answer = await fetch(new URL('/admin/sign-in-links', ready.url), { method: 'POST', headers });
  return ((await answer.json()) as { path: string }).path;
}

async function signIn(
  { platform, browser }: Started,
  link: string,
): Promise<Pick<SignedIn, 'window' | 'page' | 'options'>> {
  const window = await openWindow(browser, platform.ready.url);
  const { page } = window;
  await page.goto(link);
  await page.getByText('Operator · live').waitFor();
  // Until then nobody was signed in, and the page received errors that said so.
  window.complaints.splice(0);
  const { url, apiKey, domain } = platform.ready;
  return { window, page, options: { apiKey, apiUrl: url, sandboxUrl: url, domain } };
}
