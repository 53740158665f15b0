import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { Sandbox } from 'e2b';
import { noBrowser, openWindow, startBrowser } from '../dashboard/support/browser.ts';
import type { Window } from '../dashboard/support/browser.ts';
import { startSignedIn } from '../dashboard/support/signed-in.ts';
import { startMany } from './support/many.ts';
import type { Many } from './support/many.ts';
import { framesDuring, heapBytes, percentile } from './support/measure.ts';

const sandboxes = Number(process.env['DASHBOARD_SANDBOXES'] ?? 10_000);
const changesPerSecond = Number(process.env['DASHBOARD_CHANGES'] ?? 200);
const soakMinutes = Number(process.env['DASHBOARD_SOAK_MINUTES'] ?? 1);
const filters = 40;
const paints = 5;
const slower = 4;
const terminalBytes = 50_000_000;

const ms = (value: number) => `${value.toFixed(1)} ms`;

describe('the dashboard beside many sandboxes', { skip: noBrowser ?? false }, () => {
  let many: Many;
  let browser: Browser;
  let window: Window;
  let page: Page;

  before(async () => {
    // One after another: if one can't be started, the other is ended.
    many = await startMany(sandboxes);
    browser = await startBrowser();
    window = await openWindow(browser, many.url);
    page = window.page;
    await page.goto(many.link);
    await page.getByText('Operator · live').waitFor();
    window.complaints.splice(0);
  });
  after(async () => {
    await browser?.close();
    await many?.[Symbol.asyncDispose]();
  });

  test(`the first paint, with a processor ${slower} times slower`, async t => {
    const [times, forms]: [number[], number[]] = [[], []];
    for (let run = 0; run < paints; run++) {
      const fresh = await openWindow(browser, many.url);
      const devtools = await fresh.context.newCDPSession(fresh.page);
      await devtools.send('Emulation.setCPUThrottlingRate', { rate: slower });
      await fresh.page.goto('/dashboard/signin');
      await fresh.page.getByRole('heading', { name: 'Sign in to Atoll' }).waitFor();
      const time = await fresh.page.evaluate(
        () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN,
      );
      times.push(time);
      forms.push(await fresh.page.evaluate<number>('performance.now()'));
      await fresh.context.close();
    }
    t.diagnostic(`first paint: median ${ms(percentile(times, 0.5))} of ${times.map(ms).join(', ')}`);
    t.diagnostic(`the form is there: median ${ms(percentile(forms, 0.5))}`);
    assert.ok(times.every(Number.isFinite));
  });

  test(`a filter among ${sandboxes} sandboxes, ${changesPerSecond} of which change each second`, async t => {
    const [before, begun] = [await many.change(changesPerSecond), Date.now()];
    await page.goto('/dashboard/sandboxes');
    await page.getByRole('row').nth(20).waitFor();
    const field = page.getByLabel('Metadata, as key=value');
    const times: number[] = [];
    for (let run = 0; run < filters; run++) {
      const wanted = `customer-${run % 40}`;
      await field.fill(`customer=${wanted}`);
      const filtered = page.evaluate<number>(timeToFilter(wanted));
      await field.press('Enter');
      times.push(await filtered);
    }
    const perSecond = ((await many.change(changesPerSecond)) - before) / ((Date.now() - begun) / 1000);
    t.diagnostic(`filter: p50 ${ms(percentile(times, 0.5))}, p95 ${ms(percentile(times, 0.95))}`);
    t.diagnostic(`changes meanwhile: ${perSecond.toFixed(0)} a second`);
    assert.equal(times.length, filters);
    assert.deepEqual(window.complaints, []);
  });

  test('scrolling through the list while it changes', async t => {
    await page.goto('/dashboard/sandboxes');
    await page.getByRole('row').nth(20).waitFor();
    await page.mouse.move(700, 500);
    let deepest = 0;
    const frames = await framesDuring(page, async () => {
      for (let turn = 0; turn < 150 || (deepest <= 10_000 && turn < 1_500); turn++) {
        await page.mouse.wheel(0, 400);
        deepest = Math.max(deepest, await page.evaluate<number>('scrollY'));
      }
    });
    const shown = await page.getByText(/ shown, .*running in all/).textContent();
    t.diagnostic(
      `scrolling: ${frames.length} frames, p50 ${ms(percentile(frames, 0.5))}, p95 ${ms(percentile(frames, 0.95))}`,
    );
    t.diagnostic(`as far as ${deepest} pixels; ${shown}`);
    assert.ok(deepest > 10_000, `${deepest}`);
    assert.deepEqual(window.complaints, []);
  });

  test(`the heap over ${soakMinutes} minutes of changes`, async t => {
    await page.goto('/dashboard/sandboxes');
    await page.getByRole('row').nth(20).waitFor();
    const first = await heapBytes(page);
    const sizes: number[] = [];
    const end = Date.now() + soakMinutes * 60_000;
    while (Date.now() < end) {
      await new Promise(resolve => setTimeout(resolve, 15_000));
      sizes.push(await heapBytes(page));
    }
    const mebibytes = (bytes: number) => (bytes / 1024 ** 2).toFixed(1);
    t.diagnostic(`heap: ${mebibytes(first)} MiB at first, then ${sizes.map(mebibytes).join(', ')} MiB`);
    await many.change(0);
    assert.deepEqual(window.complaints, []);
  });
});

describe('a terminal of a real sandbox', { skip: noBrowser ?? false }, () => {
  test('frames while 50 MB come', async t => {
    await using signedIn = await startSignedIn();
    const { page, options } = signedIn;
    const sandbox = await Sandbox.create('base', { ...options, timeoutMs: 600_000 });
    await sandbox.commands.run(`head -c ${(terminalBytes / 4) * 3} /dev/urandom | base64 > /tmp/much`);
    await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}/terminal`);
    await page.getByText('connected', { exact: true }).waitFor();
    const begun = Date.now();
    const frames = await framesDuring(page, async () => {
      await page.keyboard.type('cat /tmp/much; printf "all of %s\\n" it\n');
      await page.locator('.xterm-rows').getByText('all of it', { exact: true }).waitFor({ timeout: 300_000 });
    });
    const seconds = (Date.now() - begun) / 1000;
    t.diagnostic(
      `cat of 50 MB: ${seconds.toFixed(1)} s, ${frames.length} frames, p50 ${ms(percentile(frames, 0.5))}, ` +
        `p95 ${ms(percentile(frames, 0.95))}`,
    );
    assert.deepEqual(signedIn.window.complaints, []);
  });
});

/** Runs in the page: the time from the key to rows that all belong to this customer, ms. */
const timeToFilter = (wanted: string) => `new Promise(resolve => {
  let pressedAt;
  addEventListener('keydown', () => (pressedAt = performance.now()), { once: true, capture: true });
  const look = () => {
    const rows = [...document.querySelectorAll('.sandboxes tbody tr:not([aria-hidden])')];
    const isDone = rows.length > 0 && rows.every(row => row.textContent.includes('customer=${wanted}run'));
    if (pressedAt === undefined || !isDone) requestAnimationFrame(look);
    else resolve(performance.now() - pressedAt);
  };
  requestAnimationFrame(look);
})`;
