import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { Sandbox } from 'e2b';
import type { Page } from 'playwright-core';
import { noBrowser, seriousFindings } from '../dashboard/support/browser.ts';
import { startSignedIn } from '../dashboard/support/signed-in.ts';
import type { SignedIn } from '../dashboard/support/signed-in.ts';

describe('lists of a team', { skip: noBrowser ?? false }, () => {
  let signedIn: SignedIn;
  let page: Page;
  let sandbox: Sandbox;

  const keptCsv = async () => {
    const [kept] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'CSV' }).first().click(),
    ]);
    return { name: kept.suggestedFilename(), text: await readFile(await kept.path(), 'utf8') };
  };

  before(async () => {
    signedIn = await startSignedIn();
    page = signedIn.page;
    sandbox = await Sandbox.create('base', { ...signedIn.options, metadata: { says: '=1+1,"x"' } });
  });
  after(() => signedIn?.[Symbol.asyncDispose]());

  test('lists are kept as comma-separated values', async () => {
    await page.goto('/dashboard/sandboxes');
    await page.getByRole('link', { name: sandbox.sandboxId }).waitFor();
    const sandboxes = await keptCsv();
    assert.equal(sandboxes.name, 'sandboxes.csv');
    const [head, row] = sandboxes.text.split('\r\n');
    assert.match(head ?? '', /^sandboxID,state,templateID,/);
    assert.match(row ?? '', new RegExp(`^${sandbox.sandboxId},running,.*,"{""says"":""=1\\+1,\\\\""x\\\\""""}"$`));
    await page.goto('/dashboard/events');
    await page.getByRole('link', { name: sandbox.sandboxId }).first().waitFor();
    const events = await keptCsv();
    assert.equal(events.name, 'events.csv');
    assert.match(events.text, new RegExp(`^When,What,Which,More\r\n.*sandbox.lifecycle.created,${sandbox.sandboxId},`));
    await page.goto('/dashboard/templates');
    await page.getByRole('link', { name: 'base' }).waitFor();
    assert.match((await keptCsv()).text, /\r\nbase,ready,/);
  });

  test('what a key made, and who made a sandbox, are in the audit', async () => {
    await page.goto('/dashboard/keys');
    await page
      .getByRole('link', { name: /^what it changed: / })
      .first()
      .click();
    await page.waitForURL(url => url.searchParams.has('actor'));
    const audit = page.getByRole('group', { name: 'Audit' });
    await audit.getByText(`sandbox:${sandbox.sandboxId}`).waitFor();
    const { text } = await keptCsv();
    const [, ...rows] = text.trim().split('\r\n');
    assert.ok(rows.length > 0 && rows.every(row => row.includes(',apiKey ')), text);
    assert.deepEqual(await seriousFindings(page), []);

    await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}`);
    await page.getByRole('link', { name: 'who made and changed it' }).click();
    await audit.getByText(`sandbox:${sandbox.sandboxId}`).first().waitFor();
    const targets = await audit.locator('tbody tr td:nth-child(3)').allTextContents();
    assert.deepEqual([...new Set(targets)], [`sandbox:${sandbox.sandboxId}`]);
    // The chip brings back the whole list.
    await page.getByRole('button', { name: `about sandbox:${sandbox.sandboxId}` }).click();
    await page.waitForURL(url => !url.searchParams.has('target'));
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('usage of weeks is looked at, with hours in all and when a limit is near', async () => {
    await page.goto('/dashboard/usage');
    await page.getByText('sandbox-hours', { exact: true }).waitFor({ timeout: 150_000 });
    await page.getByRole('link', { name: '7d', exact: true }).click();
    await page.waitForURL(/range=7d/);
    await page.reload();
    await page.getByRole('img', { name: 'Starts a minute' }).waitFor();
    // One day is not enough for a forecast.
    await page.getByText('not foreseen').waitFor();
    const { name, text } = await keptCsv();
    assert.equal(name, 'usage.csv');
    const [head, row] = text.split('\r\n');
    assert.equal(head, 'timestamp,concurrentSandboxes,sandboxStartRate,sandboxSeconds');
    assert.match(row ?? '', /^20\d\d-[^,]+,1,[\d.e-]+,\d+$/);
    // Use at the beginning of a minute counts towards the hours of its template.
    const hours = page.getByRole('region', { name: 'Sandbox-hours by template' }).first();
    await hours.getByRole('row').filter({ hasText: 'base' }).getByText(/^\d/).waitFor({ timeout: 90_000 });
    await hours.getByRole('link', { name: 'base' }).waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('the page of webhooks has the code that tells genuine deliveries', async () => {
    await page.goto('/dashboard/webhooks');
    const card = page.getByRole('region', { name: 'Is a delivery genuine?' });
    await card.getByText('timingSafeEqual(given, expected)').waitFor();
    await card.getByRole('button', { name: 'Python' }).click();
    await card.getByText('hmac.compare_digest').waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('a list goes on behind its first hundred rows', async () => {
    const ended = 105;
    for (let made = 0; made < ended; made += 15)
      await Promise.all(
        Array.from({ length: 15 }, async () => (await Sandbox.create('base', signedIn.options)).kill()),
      );
    const rows = (label: string) => page.getByRole('group', { name: label }).locator('tbody tr');
    const scrollTo = async (label: string, row: number) => {
      for (let shown = 100; shown <= row; shown += 100) {
        await rows(label)
          .nth(shown - 1)
          .waitFor();
        await page.mouse.wheel(0, 100_000);
      }
      await rows(label).nth(row).waitFor();
    };
    await page.goto('/dashboard/sandboxes?show=ended');
    await scrollTo('Ended sandboxes', ended - 1);
    assert.equal(await rows('Ended sandboxes').count(), ended);
    await rows('Ended sandboxes').nth(0).getByRole('link', { name: 'base' }).waitFor();
    for (const [path, label] of [
      ['events', 'Events'],
      ['audit', 'Audit'],
    ] as const) {
      await page.goto(`/dashboard/${path}`);
      await scrollTo(label, 2 * ended);
    }
    assert.deepEqual(signedIn.window.complaints, []);
  });
});
