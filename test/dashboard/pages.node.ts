import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { Page, Route } from 'playwright-core';
import { noBrowser } from './support/browser.ts';
import { shareSignedIn } from './support/signed-in.ts';
import type { SignedIn } from './support/signed-in.ts';

/** More than the API returns at once. */
const [first, many] = [100, 130];
const padded = (number: number) => String(number).padStart(4, '0');
const numbers = Array.from({ length: many }, (_, number) => number);

describe('what is behind the first hundred of something', { skip: noBrowser ?? false }, () => {
  const begin = shareSignedIn();
  let signedIn: SignedIn;
  let page: Page;
  let template: string;
  let sandbox: string;

  const ask = async <T>(method: string, path: string, body?: unknown) => {
    const response = await signedIn.platform.api(method, path, body);
    assert.ok(response.ok, `${method} ${path}: ${response.status}`);
    return (response.status === 204 ? null : await response.json()) as T;
  };
  /** Tells as many as nothing makes here within a test: what of them a question is for, by its number or its token. */
  const tell = (all: unknown[], shape = (rows: unknown[]): unknown => rows) =>
    async function (route: Route) {
      const query = new URL(route.request().url()).searchParams;
      const from = Number(query.get('offset') ?? query.get('nextToken') ?? 0);
      const to = from + Number(query.get('limit') ?? first);
      const headers = { ...(to < all.length && !query.has('offset') && { 'X-Next-Token': String(to) }) };
      await route.fulfill({ json: shape(all.slice(from, to)), headers });
    };
  /** Scrolls until all of them are there. */
  const scrollToLast = async (label: string, count: number) => {
    const rows = page.getByRole('group', { name: label, exact: true }).locator('tbody tr');
    await rows.nth(first - 1).waitFor();
    await rows.nth(first - 1).scrollIntoViewIfNeeded();
    await rows.nth(count - 1).waitFor();
    assert.equal(await rows.count(), count);
  };

  before(async () => {
    signedIn = await begin();
    page = signedIn.page;
    const made = { templateID: 'base', timeout: 900 };
    const { sandboxID, templateID } = await ask<Record<string, string>>('POST', '/v2/sandboxes', made);
    [sandbox, template] = [sandboxID ?? '', templateID ?? ''];
  });
  beforeEach(() => signedIn.window.complaints.splice(0));
  after(() => signedIn?.[Symbol.asyncDispose]());

  test('secrets are listed, and can be put into a header', async () => {
    for (const number of numbers) await ask('POST', '/secrets', { name: `s${padded(number)}`, value: 'a value' });
    await page.goto('/dashboard/secrets');
    await scrollToLast('Secrets', many);
    await page.goto('/dashboard/sandboxes?create=base');
    const sheet = page.getByRole('dialog', { name: 'New sandbox' });
    await sheet.getByText('Network and volumes').click();
    await sheet.getByRole('button', { name: 'Add a header' }).click();
    // The newest are first.
    await sheet.getByLabel('Secret to put in').selectOption('s0000');
    assert.equal(await sheet.getByLabel('Value', { exact: true }).inputValue(), '${e2b.secrets.s0000}');
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('tags of a template are listed', async () => {
    const tags = numbers.map(number => `t${padded(number)}`);
    for (let from = 0; from < many; from += 10)
      await ask('POST', '/templates/tags', { target: template, tags: tags.slice(from, from + 10) });
    await page.goto(`/dashboard/templates/${template}`);
    // Including the one that it had.
    await scrollToLast('Tags', many + 1);
    // They belong to the template that all tests start from.
    for (let from = 0; from < many; from += 10)
      await ask('DELETE', '/templates/tags', { name: template, tags: tags.slice(from, from + 10) });
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('the good build of a template is found behind those that failed', async () => {
    const path = `/templates/${template}`;
    const real = await ask<{ builds: { buildID: string; createdAt: string }[] }>('GET', path);
    const failed = numbers.map(number => ({
      ...real.builds[0],
      buildID: `00000000-0000-4000-8000-00000000${padded(number)}`,
      status: 'error',
    }));
    const answer = tell([...failed, ...real.builds], builds => ({ ...real, builds }));
    await page.route(url => url.pathname === path, answer);
    await page.goto(`/dashboard${path}`);
    await page.getByText('What a sandbox begins with').waitFor();
    const good = real.builds[0]?.buildID ?? '';
    await page
      .getByLabel('Build to name')
      .getByRole('option', { name: good.slice(0, 8) })
      .waitFor({ state: 'attached' });
    await page.unrouteAll();
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('deliveries of a webhook are listed', async () => {
    const events = ['sandbox.lifecycle.created'];
    const hook = { name: 'hook', url: 'https://hooks.example.com/', events, enabled: false };
    const { id } = await ask<{ id: string }>('POST', '/events/webhooks', hook);
    const deliveries = numbers.map(number => ({
      eventId: `00000000-0000-4000-8000-00000000${padded(number)}`,
      type: events[0],
      subject: `i${padded(number)}`,
      state: 'delivered',
      attempts: 1,
      lastStatus: 200,
      lastError: null,
      nextAttemptAt: null,
      finishedAt: new Date().toISOString(),
    }));
    await page.route(url => url.pathname === `/events/webhooks/${id}/deliveries`, tell(deliveries));
    await page.goto('/dashboard/webhooks');
    await page.getByRole('button', { name: 'hook', exact: true }).click();
    await scrollToLast('Deliveries', many);
    await page.unrouteAll();
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('forks and snapshots of a sandbox, and what began from those, are in its tree', async () => {
    const forks = numbers.map(number => ({
      id: `fork-${number}`,
      timestamp: new Date().toISOString(),
      type: 'sandbox.lifecycle.forked',
      event_data: { fork_id: `if${padded(number)}` },
    }));
    const snapshots = numbers.map(number => ({ snapshotID: `snap${padded(number)}:default`, names: [] }));
    const begun = numbers.map(number => ({ sandboxID: `ib${padded(number)}`, startedAt: new Date().toISOString() }));
    await page.route(
      url => url.pathname === `/events/sandboxes/${sandbox}` && url.search.includes('forked'),
      tell(forks),
    );
    await page.route(
      url => url.pathname === '/snapshots' && url.searchParams.get('sandboxID') === sandbox,
      tell(snapshots),
    );
    await page.route(
      url => url.pathname === '/v2/sandboxes' && url.searchParams.get('template') === 'snap0000',
      tell(begun),
    );
    await page.goto(`/dashboard/sandboxes/${sandbox}`);
    const tree = page.getByRole('list', { name: 'Snapshots and forks' });
    await tree.getByText('snap0000:default').waitFor();
    await Promise.all(['if0000', 'ib0000'].map(text => tree.getByText(text).waitFor()));
    const more = tree.getByRole('button', { name: 'Show more' });
    // A button near the window loads by itself.
    for (let tries = 0; tries < 20 && (await more.count()) > 0; tries++)
      await more
        .first()
        .click({ timeout: 1_000 })
        .catch(() => undefined);
    for (const last of ['if', 'ib', 'snap']) await tree.getByText(`${last}${padded(many - 1)}`).waitFor();
    await page.unrouteAll();
    assert.deepEqual(signedIn.window.complaints, []);
  });
});
