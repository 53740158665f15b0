import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { noBrowser, seriousFindings } from '../dashboard/support/browser.ts';
import { startSignedIn } from '../dashboard/support/signed-in.ts';
import type { SignedIn } from '../dashboard/support/signed-in.ts';

describe('the life of a sandbox in the dashboard', { skip: noBrowser ?? false }, () => {
  let signedIn: SignedIn;
  let page: Page;

  const ask = async <T>(method: string, path: string, body?: unknown) => {
    const response = await signedIn.platform.api(method, path, body);
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  };
  const create = async (templateID: string) =>
    (await ask<{ sandboxID: string }>('POST', '/v2/sandboxes', { templateID, timeout: 600 })).sandboxID;

  before(async () => {
    signedIn = await startSignedIn();
    page = signedIn.page;
  });
  after(() => signedIn?.[Symbol.asyncDispose]());

  test('snapshots and forks are a tree, seen from each of its sandboxes, and it grows by itself', async () => {
    const first = await create('base');
    await page.goto(`/dashboard/sandboxes/${first}`);
    const tree = page.getByRole('list', { name: 'Snapshots and forks' });
    await tree.getByText('this one').waitFor();
    const { snapshotID } = await ask<{ snapshotID: string }>('POST', `/sandboxes/${first}/snapshots`, {});
    await tree.getByText(snapshotID).waitFor();
    const [result] = await ask<{ sandbox: { sandboxID: string } }[]>('POST', `/sandboxes/${first}/fork`, { count: 1 });
    const fork = result?.sandbox.sandboxID ?? '';
    const begun = await create(snapshotID);
    await tree.getByRole('link', { name: begun }).waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await tree.getByRole('link', { name: fork }).click();
    await page.waitForURL(new RegExp(fork));
    await tree.getByRole('link', { name: first }).waitFor();
    await tree.getByRole('link', { name: begun }).waitFor();
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('metrics are marked with what happened', async () => {
    const id = await create('base');
    await ask('POST', `/sandboxes/${id}/pause`);
    await ask('POST', `/sandboxes/${id}/resume`, { timeout: 600 });
    await page.goto(`/dashboard/sandboxes/${id}/metrics`);
    await page.getByRole('img', { name: 'Processor' }).waitFor();
    const marks = page.getByRole('list', { name: 'Marks' }).getByRole('listitem');
    await marks.nth(2).waitFor();
    const texts = await marks.allTextContents();
    assert.deepEqual(
      texts.map(text => text.replace(/^[\d:]+\s*/, '')),
      ['Created', 'Paused', 'Resumed'],
    );
    assert.deepEqual(await seriousFindings(page), []);
    assert.deepEqual(signedIn.window.complaints, []);
  });
});
