import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { repository, startPlatform } from '../../support/platform.ts';
import { firstNode, noBrowser, openWindow, startBrowser } from '../support/browser.ts';
import { fill } from './content.ts';
import { contactSheet } from './contact-sheet.ts';

const widths = [390, 1024, 1600] as const;
const themes = ['light', 'dark'] as const;

/** Every page, with the element that shows that it is there. `{id}` is the sandbox that has content. */
const pages: Record<string, string> = {
  'sandboxes-ended': '/sandboxes?show=ended',
  'new-sandbox': '/sandboxes?create=base',
  sandbox: '/sandboxes/{id}',
  terminal: '/sandboxes/{id}/terminal',
  files: '/sandboxes/{id}/files',
  file: '/sandboxes/{id}/files?file=/home/user/agent/main.py',
  logs: '/sandboxes/{id}/logs',
  metrics: '/sandboxes/{id}/metrics',
  network: '/sandboxes/{id}/network',
  templates: '/templates',
  template: '/templates/base',
  snapshots: '/snapshots',
  volumes: '/volumes',
  secrets: '/secrets',
  events: '/events',
  usage: '/usage',
  keys: '/keys',
  members: '/members',
  webhooks: '/webhooks',
  'team-audit': '/audit',
  account: '/account',
  operator: '/operator',
  nodes: '/operator/nodes',
  node: '/operator/nodes/{node}',
  teams: '/operator/teams',
  leftovers: '/operator/leftovers',
  doctor: '/operator/doctor',
  settings: '/operator/settings',
  audit: '/operator/audit',
  // By then they have worked for a while, and their lines are as long as that.
  sandboxes: '/sandboxes',
  'sign-in': '/signin',
};
/** The pictures in the README, in dark and light. */
const shown = [
  { page: 'sandboxes', theme: 'dark' },
  { page: 'terminal', theme: 'light' },
] as const;
const shownWidth = 1600;

/** The names on the command line; without a name, all. */
const named = process.argv.slice(2).filter(word => !word.startsWith('--'));
const wanted = Object.entries(pages).filter(([name]) => named.length === 0 || named.includes(name));

/** Takes a picture of every page in both themes and three widths, and puts them on one sheet: for people to look at. */
async function takeAll(): Promise<void> {
  if (noBrowser) throw new Error(noBrowser);
  await using platform = await startPlatform();
  const id = await fill(platform);
  const browser = await startBrowser();
  const folder = await mkdtemp(join(tmpdir(), 'atoll-pictures-'));
  try {
    const link = platform.ready.dashboard ?? '';
    const taken = await takePages(browser, { url: platform.ready.url, link, id, folder });
    const sheet = join(folder, 'contact-sheet.png');
    await writeFile(sheet, await contactSheet(browser, folder, taken));
    console.log(`${taken.length} pictures in ${folder}; all of them: ${sheet}`);
    if (process.argv.includes('--readme')) {
      await mkdir(join(repository, 'docs/pictures'), { recursive: true });
      for (const { page, theme } of shown)
        await copyFile(
          join(folder, `${page}-${theme}-${shownWidth}.png`),
          join(repository, 'docs/pictures', `${page}.png`),
        );
    }
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  } finally {
    await browser.close();
  }
}

async function takePages(
  browser: Browser,
  { url, link, id, folder }: { url: string; link: string; id: string; folder: string },
): Promise<string[]> {
  const window = await openWindow(browser, url);
  await window.page.goto(link);
  await window.page.getByText('Operator · live').waitFor();
  await typeOnce(window.page, id);
  const node = await firstNode(window.page);
  const taken: string[] = [];
  for (const [name, path] of wanted) {
    await window.page.setViewportSize({ width: widths[0], height: 900 });
    await window.page.goto(`/dashboard${path.replace('{id}', id).replace('{node}', node)}`);
    await whole(window.page);
    // A line needs two samples; an idle sandbox's is flat, and so the driver considers it invisible.
    if (name === 'sandboxes')
      await window.page.locator('.sparkline polyline').first().waitFor({ state: 'attached', timeout: 60_000 });
    for (const width of widths) {
      await window.page.setViewportSize({ width, height: 900 });
      for (const theme of themes) {
        await window.page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
        const file = `${name}-${theme}-${width}.png`;
        await window.page.screenshot({ path: join(folder, file), animations: 'disabled' });
        taken.push(file);
      }
    }
  }
  for (const complaint of window.complaints) console.error(complaint);
  return taken;
}

/** Gives the terminal something to show; it is kept for the picture. */
async function typeOnce(page: Page, id: string): Promise<void> {
  await page.goto(`/dashboard/sandboxes/${id}/terminal`);
  await page.getByText('connected', { exact: true }).waitFor();
  // Input typed before the shell's prompt is shown twice.
  await page.locator('.xterm-rows').getByText('$').first().waitFor();
  await page.keyboard.type('python3 agent/main.py && df -h / | tail -1\n');
  await page.locator('.xterm-rows').getByText('step 5').waitFor();
}

/** Waits until everything on a page is there. */
async function whole(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).first().waitFor();
  await page.getByLabel('Loading').first().waitFor({ state: 'detached' });
  await page.evaluate('document.fonts.ready');
}

await takeAll();
