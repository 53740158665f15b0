import type { Browser, Page } from 'playwright-core';
import { startPlatform } from '../../support/platform.ts';
import type { TestPlatform } from '../../support/platform.ts';
import { openWindow, startBrowser } from './browser.ts';
import type { Window } from './browser.ts';

/** A platform of its own, and a window in which the operator is signed in. `options`: for the SDK. */
export type SignedIn = AsyncDisposable & {
  platform: TestPlatform;
  browser: Browser;
  window: Window;
  page: Page;
  options: { apiKey: string; apiUrl: string; sandboxUrl: string; domain: string };
};

/** Starts a platform and a browser, and signs in by the link that the start prints. */
export async function startSignedIn(): Promise<SignedIn> {
  const platform = await startPlatform();
  let browser: Browser | undefined;
  const dispose = async () => {
    await browser?.close();
    await platform[Symbol.asyncDispose]();
  };
  try {
    browser = await startBrowser();
    const window = await openWindow(browser, platform.ready.url);
    const { page } = window;
    await page.goto(platform.ready.dashboard ?? '');
    await page.getByText('Operator · live').waitFor();
    // Until then nobody was signed in, and the page was told so.
    window.complaints.splice(0);
    const { url, apiKey, domain } = platform.ready;
    const options = { apiKey, apiUrl: url, sandboxUrl: url, domain };
    return { platform, browser, window, page, options, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}
