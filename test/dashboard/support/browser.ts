import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, type Page, chromium } from 'playwright-core';

const programs = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/chromium-browser'];

/** Why no browser can be driven here; undefined if one can. */
export const noBrowser: string | undefined = programs.some(existsSync)
  ? undefined
  : 'Chromium is not installed (Debian: apt-get install chromium-headless-shell)';

/**
 * A domain whose hosts all lead to this machine, for the browser only: pages of sandboxes there belong to the
 * dashboard's own site.
 */
export const testDomain = 'atoll.test';

/** Starts Debian's Chromium, isolated from news about links that come and go on this machine. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = programs.find(existsSync) ?? '';
  const hosts = `MAP ${testDomain} 127.0.0.1, MAP *.${testDomain} 127.0.0.1`;
  const args = ['--no-sandbox', '--disable-dev-shm-usage', `--host-resolver-rules=${hosts}`];
  const own = mkdtempSync(join(tmpdir(), 'atoll-browser-'));
  const library = join(own, 'unmoved.so');
  try {
    execFileSync('cc', ['-shared', '-fPIC', '-o', library, join(import.meta.dirname, 'unmoved.c')]);
    const browser = await chromium.launch({ executablePath, args, env: { ...process.env, LD_PRELOAD: library } });
    browser.on('disconnected', () => rmSync(own, { recursive: true, force: true }));
    return browser;
  } catch (error) {
    rmSync(own, { recursive: true, force: true });
    throw error;
  }
}

/** A window whose every complaint is kept: errors of the console and of scripts, and requests to another origin. */
export type Window = { page: Page; context: BrowserContext; complaints: string[] };

/** Opens a window. Breaches of the content policy are errors of the console. */
export async function openWindow(browser: Browser, origin: string, width = 1280): Promise<Window> {
  const context = await browser.newContext({
    viewport: { width, height: 860 },
    baseURL: origin,
    // The platform's own authority signs the certificate.
    ignoreHTTPSErrors: true,
  });
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', message => {
    if (message.type() === 'error') complaints.push(`console: ${message.text()}`);
  });
  page.on('pageerror', error => complaints.push(`script: ${error.message}`));
  page.on('dialog', dialog => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', request => {
    if (!request.url().startsWith(origin) && !/^(data|blob):/.test(request.url()))
      complaints.push(`foreign request: ${request.url()}`);
  });
  return { page, context, complaints };
}

/** The ID of a machine, as a signed-in operator sees it. */
export function firstNode(page: Page): Promise<string> {
  return page.evaluate(async () => ((await (await fetch('/nodes')).json()) as { id: string }[])[0]?.id ?? '');
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

type Finding = { id: string; impact: string; nodes: { html: string }[] };

/** A finding that counts as serious here: users who move between landmarks can't tell two of the same name apart. */
const alsoSerious = 'landmark-unique';

/** Serious findings of axe-core on what is shown now, each with the first place. */
export async function seriousFindings(page: Page): Promise<string[]> {
  // The debugger evaluates it: the page's own policy admits no such script. Once per document, because it is long.
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(axeSource);
  const found = await page.evaluate(async alsoSerious => {
    type Rule = { id: string; impact: string };
    type Axe = { _audit: { rules: Rule[] }; run(options: object): Promise<{ violations: Finding[] }> };
    const { axe } = globalThis as unknown as { axe: Axe };
    const unasked = axe._audit.rules.filter(
      ({ id, impact }) => (impact === 'minor' || impact === 'moderate') && id !== alsoSerious,
    );
    // Skips rules with less than serious findings, and passing nodes, which would be described.
    const rules = Object.fromEntries(unasked.map(({ id }) => [id, { enabled: false }]));
    return (await axe.run({ resultTypes: ['violations'], preload: false, rules })).violations;
  }, alsoSerious);
  return found
    .filter(({ id, impact }) => impact === 'serious' || impact === 'critical' || id === alsoSerious)
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 160)}`);
}
