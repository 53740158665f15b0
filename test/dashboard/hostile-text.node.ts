import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Sandbox } from 'e2b';
import type { Page } from 'playwright-core';
import { noBrowser } from './support/browser.ts';
import { testSameSiteRules } from './support/same-site-rules.ts';
import { shareSignedIn } from './support/signed-in.ts';
import type { SignedIn } from './support/signed-in.ts';

/** Texts that would run, or change the page, if text became markup, a script, an address or a template. */
const corpus = [
  `"><img src=x onerror=alert(1)>`,
  `<script>alert(2)</script>`,
  `</title><svg onload=alert(3)>`,
  `' autofocus onfocus='alert(4)`,
  'javascript:alert(5)',
  `{{constructor.constructor('alert(6)')()}}`,
  '${alert(7)}',
  '\u202Egnp.exe',
  '&lt;img src=x onerror=alert(8)&gt;',
];
const all = corpus.join(' ');
const fileName = (text: string) => text.replaceAll('/', '_');

describe('hostile text in the dashboard stays text', { skip: noBrowser ?? false }, () => {
  const begin = shareSignedIn();
  let signedIn: SignedIn;
  let page: Page;
  let sandbox: Sandbox;

  /** Sends a request as the signed-in operator. */
  const ask = (method: string, path: string, body?: unknown, team?: string) =>
    page.evaluate(
      async ({ method, path, body, team }) => {
        const headers = { 'Content-Type': 'application/json', ...(team !== undefined && { 'X-Team-ID': team }) };
        const response = await fetch(path, {
          method,
          headers,
          ...(body !== undefined && { body: JSON.stringify(body) }),
        });
        const text = await response.text();
        if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
        return text === '' ? null : (JSON.parse(text) as unknown);
      },
      { method, path, body, team },
    );
  const show = async (path: string) => {
    await page.goto(`/dashboard${path}`);
    await page.getByRole('heading', { level: 1 }).first().waitFor();
    await page.getByLabel('Loading').first().waitFor({ state: 'detached' });
  };
  const nothingRan = async (where: string) => {
    const made = await page.locator('img[src="x"], svg[onload], [onfocus], [onerror], main script').count();
    const links = await page.locator('a[href^="javascript" i], a[href^="data" i], area, base').count();
    assert.deepEqual({ where, made, links }, { where, made: 0, links: 0 });
    assert.match(await page.title(), / · Atoll$/, where);
    assert.deepEqual(signedIn.window.complaints, [], where);
  };

  before(async () => {
    signedIn = await begin();
    page = signedIn.page;
    const metadata = Object.fromEntries(corpus.map((text, at) => [`${at} ${text}`, text]));
    sandbox = await Sandbox.create('base', { ...signedIn.options, metadata, timeoutMs: 900_000 });
    for (const text of corpus) {
      await sandbox.files.write(`/home/user/${fileName(text)}`, text);
      await sandbox.files.makeDir(`/home/user/folder ${fileName(text)}`);
    }
    await sandbox.files.write('/tmp/corpus', `${corpus.join('\n')}\n`);
    await sandbox.commands.run('cat /tmp/corpus; cat /tmp/corpus >&2');
  });
  after(() => signedIn?.[Symbol.asyncDispose]());
  beforeEach(() => signedIn.window.complaints.splice(0));

  test('in metadata, files, logs and commands of a sandbox', async () => {
    await show('/sandboxes');
    for (const text of corpus) await page.getByText(text).first().waitFor();
    await nothingRan('the list');
    const at = `/sandboxes/${sandbox.sandboxId}`;
    const running = await sandbox.commands.run(`sleep 600 # ${corpus[0]} ${corpus[1]}`, { background: true });
    await show(at);
    await page
      .getByText(corpus[0] ?? '')
      .first()
      .waitFor();
    await page.getByRole('cell', { name: /sleep 600/ }).waitFor();
    await nothingRan('its page');
    await running.kill();
    await show(`${at}/logs`);
    for (const text of corpus) await page.getByRole('log').getByText(text).first().waitFor();
    await nothingRan('its log');
    await show(`${at}/files`);
    for (const text of corpus) {
      await page.getByRole('button', { name: `Folder folder ${fileName(text)}`, exact: true }).waitFor();
      await page.getByRole('button', { name: `File ${fileName(text)}`, exact: true }).click();
      assert.equal(await page.getByRole('textbox').inputValue(), text);
      await nothingRan(`the file ${text}`);
      await page.goBack();
    }
    await page.getByRole('button', { name: `Folder folder ${fileName(corpus[0] ?? '')}`, exact: true }).click();
    await page.getByText('This folder is empty').waitFor();
    await nothingRan('a folder');
  });

  test('in names of teams, users, keys, webhooks and invitations, and in the address of a page', async () => {
    const [first] = (await ask('GET', '/admin/teams')) as { teamID: string }[];
    const team = first?.teamID ?? '';
    const name = all.slice(0, 100);
    await ask('POST', '/admin/teams', { name, slug: 'hostile' });
    await ask('POST', '/admin/users', { name, email: 'hostile@example.com' });
    await ask('POST', `/admin/teams/${team}/api-keys`, { name });
    const hook = {
      name,
      url: 'https://hooks.example.com/"><script>',
      events: ['sandbox.lifecycle.created'],
      enabled: false,
    };
    await ask('POST', '/events/webhooks', hook, team);
    await ask('POST', '/invitations', { role: 'viewer', note: name }, team);
    for (const path of ['/keys', '/webhooks', '/members', '/operator/teams']) {
      await show(`${path}?team=default`);
      await page.getByRole('main').getByText(name).first().waitFor();
      await nothingRan(path);
    }
    for (const path of ['/audit', '/operator/audit', '/events', '/operator', '/usage']) {
      await show(path);
      await nothingRan(path);
    }
    for (const text of corpus) {
      const wanted = encodeURIComponent(text);
      await show(`/sandboxes?text=${wanted}&template=${wanted}&show=running&team=${wanted}`);
      // No template has such a name, and the API says so.
      const { complaints } = signedIn.window;
      complaints.splice(0, complaints.length, ...complaints.filter(complaint => !complaint.includes('400')));
      await nothingRan(`the address ${text}`);
    }
  });

  test('in a terminal: no clipboard, no title, no link that runs', async () => {
    await show(`/sandboxes/${sandbox.sandboxId}/terminal`);
    await page.getByText('connected', { exact: true }).waitFor();
    await page.evaluate(`navigator.clipboard.writeText('mine')`);
    const base64 = Buffer.from('stolen').toString('base64');
    const sequences = [
      `\x1b]52;c;${base64}\x07`,
      `\x1b]52;p;${base64}\x1b\\`,
      '\x1b]0;stolen title\x07',
      '\x1b]2;stolen title\x1b\\',
      '\x1b]8;;javascript:alert(9)\x1b\\press here\x1b]8;;\x1b\\',
      '\x1b[8;3;3t\x1b[3;0;0t\x1b[21t',
      '\x1bP$qm\x1b\\',
    ];
    await sandbox.files.write('/tmp/sequences', `${sequences.join('\n')}\n${corpus.join('\n')}\n`);
    await page.keyboard.type('cat /tmp/sequences; printf "all %s\\n" shown\n');
    const screen = page.locator('.xterm-rows');
    // The terminal's answer to the last of them is typed, and may be echoed before it.
    await screen.getByText('all shown').waitFor();
    const opened = page.context().pages().length;
    // The terminal hears of the mouse through an element above the letters.
    await screen.getByText('press here').click({ force: true });
    await nothingRan('the terminal');
    assert.equal(page.context().pages().length, opened);
    assert.ok(!(await page.title()).includes('stolen'));
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), 'mine');
    assert.equal(await screen.getByText('stolen').count(), 0);
  });

  testSameSiteRules({ signedIn: () => signedIn, sandbox: () => sandbox });
});
