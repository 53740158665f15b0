import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Sandbox } from 'e2b';
import type { Locator, Page } from 'playwright-core';
import { noBrowser, seriousFindings } from './support/browser.ts';
import { addressesIn, leads, textOf } from './support/printed-links.ts';
import { joinAs } from './support/people.ts';
import { shareSignedIn } from './support/signed-in.ts';
import type { SignedIn } from './support/signed-in.ts';

const require = createRequire(import.meta.url);
const packageFolder = (name: string) => dirname(require.resolve(`${name}/package.json`));

/** Things that a page makes with a form of a few texts, and removes. */
const things = [
  {
    path: '/volumes',
    open: 'New volume',
    fields: { Name: 'shared' },
    make: 'Create',
    name: 'shared',
    action: 'Delete',
  },
  {
    path: '/secrets',
    open: 'New secret',
    fields: { Name: 'TOKEN', Value: 'a value' },
    make: 'Keep',
    name: 'TOKEN',
    action: 'Delete',
  },
  {
    path: '/keys',
    open: 'New key',
    fields: { Name: 'for a test' },
    make: 'Make',
    name: 'for a test',
    action: 'Revoke',
  },
  {
    path: '/webhooks',
    open: 'New webhook',
    fields: { Name: 'hook', Address: 'https://hooks.example.com/' },
    make: 'Make',
    name: 'hook',
    action: 'Delete',
  },
];

describe('several windows, the keyboard, and addresses', { skip: noBrowser ?? false }, () => {
  const begin = shareSignedIn();
  let signedIn: SignedIn;
  let page: Page;
  let sandbox: Sandbox;

  const show = async (path: string, name: string, of = page) => {
    await of.goto(`/dashboard${path}`);
    await of.getByRole('heading', { level: 1, name, exact: true }).waitFor();
    await of.getByLabel('Loading').first().waitFor({ state: 'detached' });
  };
  /** Presses Tab until something has the focus, like a user without a mouse. */
  const tabTo = async (target: Locator) => {
    for (let presses = 0; presses < 80; presses++) {
      if ((await target.and(page.locator(':focus')).count()) > 0) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`Tab does not lead to ${target}`);
  };

  before(async () => {
    signedIn = await begin();
    page = signedIn.page;
    sandbox = await Sandbox.create('base', { ...signedIn.options, timeoutMs: 900_000, metadata: { run: '17' } });
  });
  after(() => signedIn?.[Symbol.asyncDispose]());
  beforeEach(() => signedIn.window.complaints.splice(0));

  test('what one window makes and removes, another one of the same browser shows by itself', async () => {
    const other = await page.context().newPage();
    for (const { path, open, fields, make, name, action } of things) {
      const heading = { '/volumes': 'Volumes', '/secrets': 'Secrets', '/keys': 'API keys' }[path] ?? 'Webhooks';
      await show(path, heading);
      await show(path, heading, other);
      await page.getByRole('button', { name: open }).click();
      const dialog = page.getByRole('dialog');
      for (const [label, text] of Object.entries(fields)) await dialog.getByLabel(label).first().fill(text);
      await dialog.getByRole('button', { name: make, exact: true }).click();
      if (path === '/keys' || path === '/webhooks') await page.getByRole('button', { name: 'I have kept it' }).click();
      const row = (of: Page) => of.getByRole('row').filter({ hasText: name });
      await row(page).waitFor();
      await row(other).waitFor();
      await other.getByRole('button', { name: `${action} ${name}` }).click();
      await other.getByRole('dialog').getByRole('button', { name: action }).click();
      await row(other).waitFor({ state: 'detached' });
      await row(page).waitFor({ state: 'detached' });
    }
    await other.close();
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('what somebody does in another browser shows on the list and on the page of the sandbox', async () => {
    const guest = await joinAs({ ...signedIn, host: signedIn.window }, { name: 'Dora', role: 'developer' });
    await show('/sandboxes', 'Sandboxes');
    await show(`/sandboxes/${sandbox.sandboxId}`, 'base', guest.page);
    const row = page.getByRole('row').filter({ hasText: sandbox.sandboxId });
    await row.getByText('running', { exact: true }).waitFor();
    await guest.page.getByRole('button', { name: 'Pause', exact: true }).click();
    await row.getByText('paused', { exact: true }).waitFor();
    await row.getByRole('checkbox').check();
    await page.getByRole('button', { name: 'Resume 1' }).click();
    await guest.page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
    await guest.page.getByText('Resumed', { exact: true }).waitFor();
    assert.deepEqual(guest.complaints, []);
    await guest.context.close();
  });

  test('by the keyboard alone a sandbox is filtered for, opened, looked into, extended, and killed', async () => {
    await show('/sandboxes', 'Sandboxes');
    await tabTo(page.getByLabel('ID or text in the metadata'));
    await page.keyboard.type('17');
    await page.keyboard.press('Enter');
    await page.waitForURL(/text=.*17/);
    const doomed = await Sandbox.create('base', { ...signedIn.options, metadata: { run: '170' } });
    const link = page.getByRole('link', { name: doomed.sandboxId });
    await link.waitFor();
    await tabTo(link);
    await page.keyboard.press('Enter');
    await page.getByText('Timeline').waitFor();
    await tabTo(page.getByRole('button', { name: '+15 min' }));
    await page.keyboard.press('Enter');
    await page.getByText('Done', { exact: true }).first().waitFor();
    await tabTo(page.getByRole('link', { name: 'Logs' }));
    await page.keyboard.press('Enter');
    await page.getByRole('log').getByText('created from template').waitFor();
    await tabTo(page.getByRole('button', { name: 'Kill' }));
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Kill this sandbox?' });
    await dialog.waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await tabTo(page.getByRole('button', { name: 'Kill' }));
    await page.keyboard.press('Enter');
    await tabTo(dialog.getByRole('button', { name: 'Kill' }));
    await page.keyboard.press('Enter');
    await page.getByText('ended: killed on request').waitFor();
    assert.deepEqual(
      signedIn.window.complaints.filter(text => !text.includes('404')),
      [],
    );
  });

  test('keys move among rows, choose, search, and lead to a terminal and logs; ? lists them', async () => {
    await show('/sandboxes', 'Sandboxes');
    await page.keyboard.press('?');
    const list = page.getByRole('dialog', { name: 'Keys' });
    await list.getByText('this list').waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await page.keyboard.press('Escape');
    await list.waitFor({ state: 'detached' });
    const link = page.getByRole('link', { name: sandbox.sandboxId });
    for (let rows = 0; rows < 5 && (await link.and(page.locator(':focus')).count()) === 0; rows++)
      await page.keyboard.press('j');
    await page.keyboard.press('x');
    await page.getByLabel(`Choose ${sandbox.sandboxId}`).and(page.locator(':checked')).waitFor();
    await page.getByRole('button', { name: '+15 min 1' }).click();
    await page.getByText('1 extended').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('17');
    assert.equal(await page.getByLabel('ID or text in the metadata').inputValue(), '17');
    await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}`);
    await page.getByText('Timeline').waitFor();
    await page.keyboard.press('l');
    await page.getByRole('log').waitFor();
    await page.keyboard.press('t');
    await page.getByText('connected', { exact: true }).waitFor();
    await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}/logs`);
    await page.getByRole('log').getByText('started: /bin/bash -i -l').waitFor();
    // The list may ask for the numbers of the sandbox that was just killed.
    assert.deepEqual(
      signedIn.window.complaints.filter(text => !text.includes('404')),
      [],
    );
  });

  test('the address holds what a page shows, so that a reload and the way back show the same', async () => {
    const at = `/sandboxes/${sandbox.sandboxId}`;
    await show('/sandboxes', 'Sandboxes');
    await page.getByRole('link', { name: 'Running' }).click();
    await page.getByLabel('ID or text in the metadata').fill('17');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByRole('button', { name: 'Newest first' }).click();
    await page.waitForURL(/order=asc/);
    await page.reload();
    await page.getByRole('link', { name: 'Running' }).and(page.locator('[aria-current=page]')).waitFor();
    await page.getByRole('button', { name: 'Oldest first' }).waitFor();
    assert.equal(await page.getByLabel('ID or text in the metadata').inputValue(), '17');
    await show(`${at}/logs`, 'base');
    await page.getByLabel('From which level on').selectOption('warn');
    await page.waitForURL(/level=warn/);
    await page.reload();
    await page.getByLabel('From which level on').waitFor();
    assert.equal(await page.getByLabel('From which level on').inputValue(), 'warn');
    await page.goBack();
    await page.getByRole('button', { name: 'Oldest first' }).waitFor();
    await show(`${at}/metrics`, 'base');
    await page.getByRole('button', { name: '1h', exact: true }).click();
    await page.reload();
    await page.getByRole('button', { name: '1h', exact: true }).and(page.locator('[aria-pressed=true]')).waitFor();
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('a sandbox says on which ports it listens, and addresses of another dashboard lead to it', async () => {
    await sandbox.commands.run('python3 -m http.server 8123', { background: true });
    await sandbox.commands.run('until curl -s localhost:8123; do sleep 0.05; done');
    for (const path of [`/inspect/sandbox/${sandbox.sandboxId}`, `/some-team/sandboxes/${sandbox.sandboxId}/logs`]) {
      await page.goto(`/dashboard${path}`);
      await page.getByText('Timeline').waitFor();
      assert.ok(page.url().endsWith(`/sandboxes/${sandbox.sandboxId}`), page.url());
    }
    await page.getByRole('region', { name: 'Ports' }).getByRole('cell', { name: '8123', exact: true }).waitFor();
    await page
      .getByRole('region', { name: 'Ports' })
      .getByText(`8123-${sandbox.sandboxId}`)
      .or(page.getByText('every address'))
      .first()
      .waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    const answer = await signedIn.platform.api('GET', '/templates');
    const templates = (await answer.json()) as { templateID: string; buildID: string; aliases?: string[] }[];
    const base = templates.find(({ aliases }) => aliases?.includes('base'));
    const { templateID: templateId = '', buildID: buildId = '' } = base ?? {};
    for (const path of [`/inspect/template/${templateId}`, `/some-team/templates/${templateId}`]) {
      await page.goto(`/dashboard${path}`);
      await page.getByRole('region', { name: 'Tags' }).first().waitFor();
    }
    await page.goto(`/dashboard/some-team/templates/${templateId}/builds/${buildId}`);
    await page.getByRole('heading', { level: 1, name: `Build ${buildId.slice(0, 8)}` }).waitFor();
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('all addresses that the command line and the SDKs print lead to their pages', async () => {
    const found = ['@e2b/cli', 'e2b'].flatMap(name =>
      addressesIn(textOf(join(packageFolder(name), 'dist'), /\.m?js$/)),
    );
    assert.ok(found.includes('/dashboard?tab=keys') && found.includes('/dashboard/inspect/sandbox/{sandbox}'));
    for (const address of found) assert.ok(leads[address], `${address} is printed, and nobody knows where it leads`);
    for (const [address, heading] of Object.entries(leads)) {
      await page.goto(address.replace('{sandbox}', sandbox.sandboxId));
      await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
    }
  });
});
