import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Sandbox } from 'e2b';
import type { Page, Route } from 'playwright-core';
import { firstNode, noBrowser, seriousFindings } from '../dashboard/support/browser.ts';
import { startSignedIn } from '../dashboard/support/signed-in.ts';
import type { SignedIn } from '../dashboard/support/signed-in.ts';

/**
 * Pages of one thing and the request that each depends on, which is delayed and fails here. `{…}` are existing things.
 */
const pages: { path: string; name: string | RegExp; of: string; again: 'by hand' | 'by itself' }[] = [
  { path: '/sandboxes/{sandbox}', name: /base|i/, of: '/sandboxes/{sandbox}', again: 'by hand' },
  { path: '/sandboxes/{sandbox}/logs', name: 'base', of: '/sandboxes/{sandbox}/logs/stream', again: 'by itself' },
  { path: '/sandboxes/{sandbox}/metrics', name: 'base', of: '/sandboxes/{sandbox}/metrics', again: 'by hand' },
  { path: '/sandboxes/{sandbox}/network', name: 'base', of: '/sandboxes/{sandbox}/traffic', again: 'by hand' },
  { path: '/templates/{template}', name: /base|Template/, of: '/templates/{template}', again: 'by hand' },
  { path: '/volumes/{volume}', name: /shared|Volume/, of: '/volumes/{volume}', again: 'by hand' },
  { path: '/operator/nodes/{node}', name: /Node/, of: '/nodes/{node}', again: 'by itself' },
  { path: '/account', name: 'Operator', of: '/sessions', again: 'by hand' },
];

/** Every page whose controls are visited with Tab. */
const controlled = [
  '/sandboxes',
  '/sandboxes?show=ended',
  '/sandboxes/{sandbox}',
  '/sandboxes/{sandbox}/files',
  '/sandboxes/{sandbox}/logs',
  '/sandboxes/{sandbox}/metrics',
  '/sandboxes/{sandbox}/network',
  '/templates',
  '/templates/{template}',
  '/snapshots',
  '/volumes',
  '/volumes/{volume}',
  '/secrets',
  '/events',
  '/usage',
  '/audit',
  '/keys',
  '/members',
  '/webhooks',
  '/account',
  '/operator',
  '/operator/nodes',
  '/operator/nodes/{node}',
  '/operator/teams',
  '/operator/leftovers',
  '/operator/settings',
  '/operator/audit',
];

/** Marks the usable controls of a page, and answers their number; in a group of radios, one is reachable. */
const markControls = `(() => {
  const all = [...document.querySelectorAll('main :is(a[href], button, input, select, textarea, summary)')];
  const usable = all.filter(one => !one.disabled && one.checkVisibility() && one.type !== 'file');
  const names = new Set();
  const marked = usable.filter(one => {
    if (one.type !== 'radio') return true;
    const isFirst = !names.has(one.name);
    names.add(one.name);
    return isFirst;
  });
  marked.forEach((one, index) => (one.dataset.control = String(index)));
  return marked.map(one => (one.getAttribute('aria-label') ?? one.textContent ?? one.name ?? '').trim().slice(0, 60));
})()`;
/** The mark of the focused control, and whether its focus is visible; null outside of the page's content. */
const focused = `(() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const style = getComputedStyle(one);
  return { control: one.dataset.control ?? null, shows: style.outlineStyle !== 'none' || style.boxShadow !== 'none' };
})()`;

describe('every page, when all is not well and without a mouse', { skip: noBrowser ?? false }, () => {
  let signedIn: SignedIn;
  let page: Page;
  const ids: Record<string, string> = {};

  const filled = (text: string) => text.replace(/\{(\w+)\}/g, (_, kind: string) => ids[kind] ?? '');
  const ask = async (method: string, path: string, body: unknown) => {
    const response = await signedIn.platform.api(method, path, body);
    assert.ok(response.ok, `${method} ${path}: ${response.status}`);
    return (await response.json()) as Record<string, string>;
  };
  const loaded = () => page.getByLabel('Loading').first().waitFor({ state: 'detached' });

  before(async () => {
    signedIn = await startSignedIn();
    page = signedIn.page;
    const sandbox = await Sandbox.create('base', { ...signedIn.options, timeoutMs: 900_000 });
    ids['sandbox'] = sandbox.sandboxId;
    ids['template'] = (await ask('GET', `/sandboxes/${sandbox.sandboxId}`, undefined))['templateID'] ?? '';
    ids['volume'] = (await ask('POST', '/volumes', { name: 'shared' }))['volumeID'] ?? '';
    ids['node'] = await firstNode(page);
    await ask('POST', '/secrets', { name: 'token', value: 'a value' });
    await ask('POST', `/sandboxes/${sandbox.sandboxId}/snapshots`, {});
  });
  beforeEach(() => signedIn.window.complaints.splice(0));
  after(() => signedIn?.[Symbol.asyncDispose]());

  test('pages of one thing say that they wait, why they failed, and go on', async () => {
    for (const { path, of, again } of pages) {
      const matches = (url: URL) => url.pathname === filled(of);
      const message = `the database of ${of} is away`;
      const failing = (route: Route) => route.fulfill({ status: 500, json: { code: 500, message } });
      let fail = () => {};
      const held = new Promise<void>(resolve => (fail = resolve));
      await page.route(matches, route => held.then(() => failing(route)));
      await page.goto(`/dashboard${filled(path)}`);
      await page.getByLabel('Loading').first().waitFor();
      fail();
      const alert = page.getByRole('alert').filter({ hasText: message });
      await alert.first().waitFor();
      assert.deepEqual(await seriousFindings(page), [], path);
      const isByHand = again === 'by hand';
      // While it still fails: some pages also ask again after a while.
      if (isByHand) await alert.first().getByRole('button', { name: 'Try again' }).focus();
      await page.unroute(matches);
      if (isByHand) await page.keyboard.press('Enter');
      await alert.first().waitFor({ state: 'detached' });
      await loaded();
    }
    assert.deepEqual(
      signedIn.window.complaints.filter(text => !text.includes('500')),
      [],
    );
  });

  test('Tab alone reaches everything that can be used, shows where it is, and a reload keeps the page', async () => {
    let all = 0;
    for (const path of controlled) {
      await page.goto(`/dashboard${filled(path)}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await loaded();
      const at = page.url();
      const names = await page.evaluate<string[]>(markControls);
      all += names.length;
      const reached = new Set<string>();
      await page.getByRole('link', { name: 'Skip to the content' }).focus();
      for (let presses = 0; presses < names.length + 80 && reached.size < names.length; presses++) {
        await page.keyboard.press('Tab');
        const now = await page.evaluate<{ control: string | null; shows: boolean } | null>(focused);
        if (now?.control == null) continue;
        assert.ok(now.shows, `${path}: ${names[Number(now.control)]} does not show that it has the focus`);
        reached.add(now.control);
      }
      // Controls drawn again meanwhile have lost their mark, and are other elements.
      const gone = await page.evaluate<number>(`${names.length} - document.querySelectorAll('[data-control]').length`);
      const missed = names.filter((_, index) => !reached.has(String(index)));
      assert.ok(missed.length <= gone, `${path}: Tab does not reach ${missed.join(', ')}`);
      await page.reload();
      await page.getByRole('heading', { level: 1 }).waitFor();
      assert.equal(page.url(), at);
    }
    assert.ok(all > 150, `${all} controls`);
    assert.deepEqual(signedIn.window.complaints, []);
  });
});
