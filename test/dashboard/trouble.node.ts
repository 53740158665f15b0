import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Sandbox } from 'e2b';
import type { Page, Route } from 'playwright-core';
import { noBrowser, openWindow, seriousFindings } from './support/browser.ts';
import { shareSignedIn } from './support/signed-in.ts';
import type { SignedIn } from './support/signed-in.ts';

describe('what pages keep while something fails, or somebody else changes it', { skip: noBrowser ?? false }, () => {
  const begin = shareSignedIn();
  let signedIn: SignedIn;
  let page: Page;
  let sandbox: Sandbox;

  const failing = (route: Route) =>
    route.fulfill({ status: 500, json: { code: 500, message: 'the database is away' } });
  /** Sends a request to the API as the signed-in operator, independently of the page. */
  const ask = (method: string, path: string, body?: unknown) =>
    page.evaluate(
      async ([method, path, body]) => {
        const headers = { 'Content-Type': 'application/json' };
        const response = await fetch(path, { method, ...(body !== '' && { headers, body }) });
        return (await response.json()) as unknown;
      },
      [method, path, body === undefined ? '' : JSON.stringify(body)] as const,
    );

  /** What the live regions tell screen readers: outside of an open dialog, nothing is announced. */
  const readOut = async (of: Page) => {
    const session = await of.context().newCDPSession(of);
    const { nodes } = await session.send('Accessibility.getFullAXTree');
    await session.detach();
    const byId = new Map(nodes.map(node => [node.nodeId, node]));
    const isRead = (node?: (typeof nodes)[number]): boolean =>
      node !== undefined && (node.role?.value === 'status' || isRead(byId.get(node.parentId ?? '')));
    return nodes
      .filter(node => !node.ignored && isRead(node))
      .map(({ name }) => String(name?.value ?? ''))
      .join('\n');
  };

  before(async () => {
    signedIn = await begin();
    page = signedIn.page;
    sandbox = await Sandbox.create('base', { ...signedIn.options, timeoutMs: 900_000 });
  });
  beforeEach(() => signedIn.window.complaints.splice(0));
  after(() => signedIn?.[Symbol.asyncDispose]());

  test('a page stays with what is open in it where what it knows cannot be renewed', async () => {
    await sandbox.files.write('/home/user/notes.txt', 'first');
    await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}/files?file=/home/user/notes.txt`);
    const text = page.getByRole('textbox', { name: 'Text of /home/user/notes.txt' });
    await text.fill('not saved yet');
    const paths = [`/sandboxes/${sandbox.sandboxId}`, '/admin/teams', '/session'];
    const isOne = (url: URL) => paths.includes(url.pathname);
    await page.route(isOne, failing);
    const alert = page.getByRole('alert').filter({ hasText: 'the database is away' });
    const asked = page.waitForResponse(response => isOne(new URL(response.url())));
    await sandbox.setTimeout(600_000);
    assert.equal((await asked).status(), 500);
    await alert.waitFor();
    assert.equal(await text.inputValue(), 'not saved yet');
    assert.deepEqual(await seriousFindings(page), []);
    await page.unroute(isOne);
    await alert.getByRole('button', { name: 'Try again' }).click();
    await alert.waitFor({ state: 'detached' });
    assert.equal(await text.inputValue(), 'not saved yet');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('not saved', { exact: true }).waitFor({ state: 'detached' });
  });

  test('a text that is written is not lost: to its lines’ ends, a save, a change or an end of the file, or a way out', async () => {
    const path = '/home/user/windows.txt';
    await sandbox.files.write(path, 'one\r\ntwo\r\nthree\n');
    await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}/files`);
    await page.getByRole('button', { name: 'File windows.txt', exact: true }).click();
    const text = page.getByRole('textbox', { name: `Text of ${path}` });
    const unsaved = page.getByText('not saved', { exact: true });
    const save = page.getByRole('button', { name: 'Save' });
    assert.equal(await text.inputValue(), 'one\ntwo\nthree\n');
    await text.fill('one\nTWO\nthree\n');

    // Text typed during a save is still a draft, and saved by the next.
    let write = () => {};
    const held = new Promise<void>(resolve => (write = resolve));
    const isWrite = (url: URL) => url.pathname === '/files' && url.searchParams.get('path') === path;
    await page.route(isWrite, route =>
      (route.request().method() === 'POST' ? held : Promise.resolve()).then(() => route.continue()),
    );
    const isAsked = page.waitForRequest(request => request.method() === 'POST' && isWrite(new URL(request.url())));
    await save.click();
    await isAsked;
    await text.press('Control+End');
    await text.pressSequentially('four');
    write();
    await page.getByText('Saved', { exact: true }).waitFor();
    await unsaved.waitFor();
    assert.equal(await sandbox.files.read(path), 'one\r\nTWO\r\nthree\n');
    await save.click();
    await unsaved.waitFor({ state: 'detached' });
    assert.equal(await sandbox.files.read(path), 'one\r\nTWO\r\nthree\nfour');
    await page.unroute(isWrite);

    // The user leaves the page, and then the file goes.
    await text.fill('mine');
    await page.getByRole('link', { name: 'Logs' }).click();
    const leaving = page.getByRole('dialog', { name: 'Leave windows.txt unsaved?' });
    assert.deepEqual(await seriousFindings(page), []);
    await leaving.getByRole('button', { name: 'Cancel' }).click();
    assert.equal(await text.inputValue(), 'mine');
    await sandbox.files.remove(path);
    await save.click();
    const gone = page.getByRole('dialog', { name: 'It is not there any more' });
    assert.deepEqual(await seriousFindings(page), []);
    await gone.getByRole('button', { name: 'Make it again' }).click();
    await unsaved.waitFor({ state: 'detached' });
    assert.equal(await sandbox.files.read(path), 'mine');

    await text.fill('given up');
    const asked = new Promise<string>(resolve => page.once('dialog', dialog => resolve(dialog.type())));
    await page.evaluate('location.reload()').catch(() => undefined);
    assert.equal(await asked, 'beforeunload');
    await page.getByRole('link', { name: 'Logs' }).click();
    await leaving.getByRole('button', { name: 'Leave' }).click();
    await page.waitForURL(/logs/);
    // The browser's own question and the requests for the missing file were expected.
    assert.deepEqual(
      signedIn.window.complaints.filter(one => !/^dialog:|404/.test(one)),
      [],
    );
  });

  test('a text that is written stays while its sandbox is paused, which may happen by itself, and after its end', async () => {
    const other = await Sandbox.create('base', { ...signedIn.options, timeoutMs: 900_000 });
    const path = '/home/user/plan.txt';
    await other.files.write(path, 'first');
    await page.goto(`/dashboard/sandboxes/${other.sandboxId}/files?file=${path}`);
    const text = page.getByRole('textbox', { name: `Text of ${path}` });
    await text.fill('second');
    const save = page.getByRole('button', { name: 'Save' });
    await other.pause();
    await page.getByText('It is paused').waitFor();
    await save.waitFor({ state: 'detached' });
    assert.equal(await text.inputValue(), 'second');
    assert.deepEqual(await seriousFindings(page), []);
    await page.getByText('It is paused').locator('..').getByRole('button', { name: 'Resume' }).click();
    await save.click();
    await page.getByText('not saved', { exact: true }).waitFor({ state: 'detached' });
    assert.equal(await other.files.read(path), 'second');
    await text.fill('third');
    await other.kill();
    await page.getByText('It has ended').waitFor();
    assert.equal(await text.inputValue(), 'third');
    await page.getByRole('link', { name: 'Logs' }).click();
    await page.getByRole('dialog', { name: 'Leave plan.txt unsaved?' }).getByRole('button', { name: 'Leave' }).click();
    await page.waitForURL(/logs/);
    // The requests about the ended sandbox were expected; nothing more is requested.
    await page.goto('about:blank');
    assert.deepEqual(
      signedIn.window.complaints.filter(one => !/404|502/.test(one)),
      [],
    );
  });

  test('an image shows again, a search that is left ends, and files go where they were put', async () => {
    const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    await sandbox.files.write('/home/user/pictures/dot.png', new Blob([Buffer.from(pixel, 'base64')]));
    await sandbox.files.write('/home/user/pictures/notes.txt', 'old');
    await sandbox.files.makeDir('/home/user/pictures/later');
    await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}/files?path=/home/user/pictures`);
    const image = page.getByRole('img', { name: 'dot.png' });
    for (const _ of [1, 2]) {
      await page.getByRole('button', { name: 'File dot.png', exact: true }).click();
      await image.waitFor();
      await page.waitForFunction('document.querySelector("img.preview")?.naturalWidth === 1');
      await page.getByRole('button', { name: 'Back' }).click();
    }

    // The folder's list arrives late, when another folder is shown.
    const isList = (url: URL) => url.pathname.endsWith('Filesystem/ListDir');
    let tell = () => {};
    const held = new Promise<void>(resolve => (tell = resolve));
    const asked = page.waitForRequest(request => isList(new URL(request.url())));
    await page.route(isList, async route => {
      if (route.request().postDataJSON().path === '/home/user/pictures') await held;
      await route.continue();
    });
    const notes = { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('new') };
    await page.getByLabel('Files to upload').setInputFiles([notes]);
    await asked;
    await page.getByRole('button', { name: 'Folder later', exact: true }).click();
    await page.waitForURL(/later/);
    tell();
    await page.getByRole('dialog', { name: 'Replace notes.txt?' }).getByRole('button', { name: 'Replace' }).click();
    await page.getByText('notes.txt uploaded').waitFor();
    assert.equal(await sandbox.files.read('/home/user/pictures/notes.txt'), 'new');
    assert.equal(await sandbox.files.exists('/home/user/pictures/later/notes.txt'), false);
    await page.unroute(isList);

    const isStart = (url: string) => url.endsWith('process.Process/Start');
    await page.route(
      url => isStart(url.href),
      () => undefined,
    );
    await page.getByRole('searchbox', { name: 'Find in files' }).fill('anything');
    const started = page.waitForRequest(request => isStart(request.url()));
    await page.getByRole('button', { name: 'Find', exact: true }).click();
    await started;
    const ended = page.waitForEvent('requestfailed', request => isStart(request.url()));
    await page.getByRole('button', { name: 'anything' }).click();
    await ended;
    await page.unrouteAll();
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('limits that another operator has changed meanwhile stay as they were set', async () => {
    const [team] = (await ask('GET', '/admin/teams')) as { teamID: string; name: string }[];
    await page.goto('/dashboard/operator/teams');
    await page.getByRole('button', { name: 'Limits' }).first().click();
    const dialog = page.getByRole('dialog', { name: `Limits of ${team?.name}` });
    await ask('PATCH', `/admin/teams/${team?.teamID}`, { limits: { volumes: 7 } });
    await dialog.getByLabel('Snapshots').fill('11');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    const [now] = (await ask('GET', '/admin/teams')) as { limits: Record<string, number> }[];
    assert.deepEqual([now?.limits['volumes'], now?.limits['snapshots']], [7, 11]);
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('a terminal begins anew where its shell is gone, says why none can begin, and takes what is typed ahead', async () => {
    const other = await Sandbox.create('base', { ...signedIn.options, timeoutMs: 900_000 });
    await page.goto(`/dashboard/sandboxes/${other.sandboxId}/terminal`);
    const visible = page.locator('.xterm-rows:visible');
    const connected = page.getByText('connected', { exact: true }).and(page.locator(':visible'));
    await connected.waitFor();
    const first = await page.getByText(/^process \d+$/).textContent();
    // The process of this window's shell has ended unobserved, and its PID is another's.
    await page.evaluate(`for (const key of Object.keys(sessionStorage))
      if (/^atoll[.]shell[.].*[.]1$/.test(key)) sessionStorage.setItem(key, 'dashboard-of-nobody')`);
    await page.reload();
    await page.getByText(/^process \d+$/).waitFor();
    assert.notEqual(await page.getByText(/^process \d+$/).textContent(), first);
    await page.keyboard.type('printf "new %s\\n" one\n');
    await visible.getByText('new one', { exact: true }).waitFor();
    await page.keyboard.type('exit\n');
    await page.getByText('the shell has ended').waitFor();
    await page.reload();
    await connected.waitFor();

    const shellAs = async (user: string, directory: string) => {
      await page.getByRole('button', { name: 'Shell as' }).click();
      const asked = page.getByRole('dialog', { name: 'New shell' });
      await asked.getByLabel('User', { exact: true }).fill(user);
      await asked.getByLabel('Directory').fill(directory);
      await asked.getByRole('button', { name: 'Open' }).click();
    };
    await shellAs('root', '/nowhere');
    await page.getByText('it can’t begin').and(page.locator(':visible')).waitFor();
    await page.getByText("cwd '/nowhere' does not exist").waitFor();
    assert.deepEqual(await seriousFindings(page), []);

    let start = () => {};
    const held = new Promise<void>(resolve => (start = resolve));
    await page.route('**/process.Process/Start', route => held.then(() => route.continue()));
    await page.getByRole('button', { name: 'New shell' }).click();
    await page.getByText('connecting', { exact: true }).and(page.locator(':visible')).waitFor();
    await page.keyboard.type('printf "typed %s\\n" ahead\n');
    start();
    await visible.getByText('typed ahead', { exact: true }).waitFor();
    await page.unroute('**/process.Process/Start');

    // A lost key is reported; the shell goes on.
    const input = '**/process.Process/SendInput';
    await page.route(input, failing);
    await page.keyboard.type('x');
    await page.getByText('What was typed has not arrived: the database is away').waitFor();
    await connected.waitFor();
    await page.unroute(input);
    await page.keyboard.type('printf "goes %s\n" on\n');
    await visible.getByText('goes on', { exact: true }).waitFor();
    assert.deepEqual(
      signedIn.window.complaints.filter(one => !one.includes('500')),
      [],
    );
  });

  test('who is in no team is told so, on every page of a team; a page that cannot be drawn leaves the frame', async () => {
    const { userID } = (await ask('POST', '/admin/users', { name: 'Newcomer' })) as { userID: string };
    const { path } = (await ask('POST', '/admin/sign-in-links', { userID })) as { path: string };
    const guest = await openWindow(signedIn.browser, signedIn.platform.ready.url);
    await guest.page.goto(path);
    await guest.page.getByText('Newcomer · ').waitFor();
    for (const at of ['/sandboxes', '/members', `/sandboxes/${sandbox.sandboxId}/logs`]) {
      await guest.page.goto(`/dashboard${at}`);
      await guest.page.getByRole('heading', { name: 'You are in no team' }).waitFor();
      assert.deepEqual(await seriousFindings(guest.page), []);
    }
    await guest.page.getByRole('link', { name: 'Account' }).click();
    await guest.page.getByRole('heading', { level: 1, name: 'Newcomer' }).waitFor();

    await page.goto('/dashboard/operator/teams');
    await page.getByRole('button', { name: 'Add Newcomer to a team' }).click();
    await page.getByRole('dialog').getByLabel('Team').press('ArrowDown');
    assert.deepEqual(await seriousFindings(page), []);
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^Add to / })
      .click();
    await page.getByText('Joined', { exact: true }).waitFor();
    await guest.page.goto('/dashboard/members');
    await guest.page.getByRole('row').filter({ hasText: 'Newcomer' }).waitFor();
    await guest.context.close();

    await page.route('**/api-keys', route => route.fulfill({ json: [{}] }));
    await page.goto('/dashboard/keys');
    await page.getByRole('heading', { level: 1, name: 'This page has failed' }).waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await page.unroute('**/api-keys');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { level: 1, name: 'API keys' }).waitFor();
    signedIn.window.complaints.splice(0);
  });

  test('a page holds few long requests over plain HTTP: shells that are not shown wait, and the page answers', async () => {
    const other = await Sandbox.create('base', { ...signedIn.options, timeoutMs: 900_000 });
    await page.goto(`/dashboard/sandboxes/${other.sandboxId}/terminal`);
    const isVisible = page.locator(':visible');
    const connected = page.getByText('connected', { exact: true });
    await connected.and(isVisible).waitFor();
    await page.keyboard.type('printf "first %s\\n" one\n');
    const visible = page.locator('.xterm-rows:visible');
    await visible.getByText('first one', { exact: true }).waitFor();
    for (let shells = 2; shells <= 7; shells++) {
      await page.getByRole('button', { name: 'New shell' }).click();
      await page.getByRole('button', { name: `Shell ${shells}`, pressed: true }).waitFor();
      await connected.and(isVisible).waitFor();
    }
    // Besides the stream of events; a hidden shell also shows its state.
    await page.getByText('waiting', { exact: true }).nth(3).waitFor({ state: 'attached' });
    assert.equal(await connected.count(), 3);
    await page.getByRole('button', { name: 'Shell 1', exact: true }).click();
    await connected.and(isVisible).waitFor();
    await visible.getByText('first one', { exact: true }).waitFor();
    await page.keyboard.type('printf "again %s\\n" one\n');
    await visible.getByText('again one', { exact: true }).waitFor();
    assert.equal(await connected.count(), 3);
    await page
      .getByRole('navigation', { name: 'Sandbox', exact: true })
      .getByRole('link', { name: 'Overview' })
      .click();
    await page.getByRole('region', { name: 'Commands' }).getByRole('row').nth(7).waitFor();
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('of a folder with thousands of files as many are drawn as one has scrolled to', async () => {
    await sandbox.commands.run(
      'mkdir -p /home/user/many && cd /home/user/many && seq -f "file-%05g" 3000 | xargs touch',
    );
    await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}/files?path=/home/user/many`);
    const rows = page.getByRole('group', { name: 'Content of /home/user/many' }).getByRole('row');
    await page.getByText('200 of 3,000 are shown').waitFor();
    assert.equal(await rows.count(), 201);
    assert.deepEqual(await seriousFindings(page), []);
    await page.getByRole('button', { name: 'Show more' }).scrollIntoViewIfNeeded();
    await page.getByText('400 of 3,000 are shown').waitFor();
    await page.getByLabel('Order').selectOption('changed');
    assert.ok((await rows.count()) < 1_000);
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('a folder is watched again where the connection was lost', async () => {
    const watch = '**/filesystem.Filesystem/WatchDir';
    await page.route(watch, route => route.abort(), { times: 1 });
    const again = page
      .waitForRequest(request => request.url().endsWith('WatchDir'))
      .then(() => page.waitForRequest(request => request.url().endsWith('WatchDir')));
    await sandbox.files.makeDir('/home/user/watched');
    await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}/files?path=/home/user/watched`);
    await page.getByText('This folder is empty').waitFor();
    // A sandbox that was paused meanwhile is not woken by its page.
    assert.equal((await again).headers()['atoll-only-running'], '1');
    await sandbox.files.write('/home/user/watched/late.txt', '');
    await page.getByRole('button', { name: 'File late.txt', exact: true }).waitFor();
    assert.deepEqual(
      signedIn.window.complaints.filter(one => !one.includes('ERR_FAILED')),
      [],
    );
  });

  test('no other file of a sandbox that is paused is read', async () => {
    const other = await Sandbox.create('base', { ...signedIn.options, timeoutMs: 900_000 });
    for (const name of ['first', 'second']) await other.files.write(`/home/user/read/${name}.txt`, name);
    await page.goto(`/dashboard/sandboxes/${other.sandboxId}/files?path=/home/user/read`);
    const text = (name: string) => page.getByRole('textbox', { name: `Text of /home/user/read/${name}.txt` });
    await page.getByRole('button', { name: 'File first.txt', exact: true }).click();
    await text('first').waitFor();
    await page.getByRole('button', { name: 'Back' }).click();
    await page.getByRole('button', { name: 'File second.txt', exact: true }).click();
    await text('second').waitFor();
    await other.pause();
    await page.getByText('It is paused').waitFor();
    await text('second').waitFor();
    for (let back = 0; back < 2; back++) await page.goBack();
    await page.waitForURL(/first\.txt/);
    await page.getByText('It is paused').waitFor();
    assert.equal(await text('first').count(), 0);
    // The page of a sandbox that is gone complains about it, perhaps during the next test.
    await page.goto('about:blank');
    await other.kill();
  });

  test('of a log that is longer than what is shown, it is said that there is more', async () => {
    const line = (at: number) => ({
      timestamp: new Date(at).toISOString(),
      level: 'info',
      message: `line ${at}`,
      fields: { logger: 'process' },
    });
    const lines = Array.from({ length: 1_000 }, (_, at) => `id: ${at + 1}\ndata: ${JSON.stringify(line(at + 1))}\n\n`);
    const body = `event: ready\ndata: {}\n\n${lines.join('')}event: end\ndata: {}\n\n`;
    const headers = { 'content-type': 'text/event-stream' };
    await page.route('**/logs/stream?*', route => route.fulfill({ body, headers }));
    await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}/logs`);
    const log = page.getByRole('log', { name: 'Log' });
    await log.getByText('line 1000', { exact: true }).waitFor();
    await log.getByText('Earlier entries may not be shown here').waitFor();
    assert.deepEqual(await seriousFindings(page), []);

    await page.unrouteAll({ behavior: 'wait' });
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('of a timeline, steps of a build and a downloaded log that are cut, it is said so', async () => {
    const { sandboxId } = sandbox;
    const answer = await signedIn.platform.api('GET', `/events/sandboxes/${sandboxId}`);
    const [event] = (await answer.json()) as object[];
    const events = Array.from({ length: 100 }, (_, at) => ({ ...event, id: `event ${at}` }));
    await page.route(
      url => url.pathname === `/events/sandboxes/${sandboxId}`,
      route => route.fulfill({ json: events }),
    );
    await page.goto(`/dashboard/sandboxes/${sandboxId}`);
    await page.getByText('The last 100 moments; earlier ones are not shown.').waitFor();
    assert.deepEqual(await seriousFindings(page), []);

    await page.route(
      url => url.pathname === `/v2/sandboxes/${sandboxId}/logs`,
      route => {
        const cursor = Number(new URL(route.request().url()).searchParams.get('cursor'));
        const logs = Array.from({ length: 1_000 }, (_, at) => ({
          timestamp: new Date(cursor + at).toISOString(),
          level: 'info',
          message: `line ${cursor + at}`,
          fields: { logger: 'process' },
        }));
        return route.fulfill({ json: { logs } });
      },
    );
    await page.goto(`/dashboard/sandboxes/${sandboxId}/logs`);
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download' }).click();
    await page.getByText('The file has the first 100,000 entries').waitFor();
    const text = await readFile(await (await download).path(), 'utf8');
    assert.match(text, /line 99999\n# There is more: [^\n]*\n$/);

    const template = await signedIn.platform.api('GET', '/templates/base');
    const { builds } = (await template.json()) as { builds: { buildID: string }[] };
    const line = (message: string, at: number) =>
      `id: ${at}\ndata: ${JSON.stringify({ timestamp: new Date(at).toISOString(), level: 'info', message })}\n\n`;
    const lines = [...Array.from({ length: 2_099 }, (_, at) => `line ${at}`), '[builder 2/2] RUN make'].map(line);
    const body = `event: ready\ndata: {}\n\n${lines.join('')}event: end\ndata: {}\n\n`;
    const headers = { 'content-type': 'text/event-stream' };
    await page.route('**/logs/stream*', route => route.fulfill({ body, headers }));
    await page.goto('/dashboard/templates/base');
    const build = builds[0]?.buildID.slice(0, 8) ?? '';
    await page.getByRole('region', { name: 'Builds' }).last().getByRole('link', { name: build }).click();
    await page.getByText('ready', { exact: true }).waitFor();
    await page.getByRole('row').filter({ hasText: 'RUN make' }).waitFor();
    await page.getByText('Steps that the first 100 entries of the log of this build tell of are not shown.').waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await page.unrouteAll({ behavior: 'wait' });
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('what gives much away is done after a question, and what goes wrong is said above it', async () => {
    await ask('POST', '/admin/users', { name: 'Ada' });
    const [team] = (await ask('GET', '/admin/teams')) as { name: string; slug: string }[];
    await page.goto('/dashboard/operator/teams');
    await page.getByRole('button', { name: 'Make Ada an operator' }).click();
    const question = page.getByRole('dialog', { name: 'Make Ada an operator?' });
    assert.deepEqual(await seriousFindings(page), []);
    await question.getByRole('button', { name: 'Make operator' }).click();
    await page.getByRole('button', { name: 'Make Ada an operator no more' }).waitFor();
    await page.getByRole('button', { name: `Block ${team?.name}` }).click();
    const block = page.getByRole('dialog', { name: `Block ${team?.name}?` });
    await block.getByRole('button', { name: 'Cancel' }).click();
    assert.equal(await page.getByText('may read and delete').count(), 0);

    await page.getByRole('button', { name: 'New team' }).click();
    const form = page.getByRole('dialog', { name: 'New team' });
    await form.getByLabel('Name', { exact: true }).fill('Another');
    await form.getByLabel(/^Namespace/).fill(team?.slug ?? '');
    await form.getByRole('button', { name: 'Make' }).click();
    await page.getByText(`"${team?.slug}" is taken`).waitFor();
    // In the layer of dialogs and above all of them, and in the announced part while one is open.
    assert.ok(await page.evaluate('document.querySelector("dialog .toasts").matches(":popover-open")'));
    assert.match(await readOut(page), /is taken/);
    await form.getByRole('button', { name: 'Cancel' }).click();

    await page.goto('/dashboard/templates/base');
    await page.getByRole('button', { name: 'Keep to this team' }).click();
    await page.getByRole('button', { name: 'Show to every team' }).click();
    const show = page.getByRole('dialog', { name: 'Show this template to every team?' });
    assert.deepEqual(await seriousFindings(page), []);
    await show.getByRole('button', { name: 'Show it' }).click();
    await page.getByRole('button', { name: 'Keep to this team' }).waitFor();
    assert.deepEqual(
      signedIn.window.complaints.filter(one => !one.includes('409')),
      [],
    );
  });

  test('what can be done stays in sight beside long names, and the one that is chosen in a long list', async () => {
    const name = 'a-name-that-goes-on-'.repeat(12);
    await sandbox.files.write(`/home/user/named/${name}`, '');
    const isInSight = (selector: string) =>
      page.evaluate<boolean>(`(() => {
        const { right, bottom } = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect();
        return right <= innerWidth && bottom <= innerHeight;
      })()`);
    await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}/files?path=/home/user/named`);
    await page.getByRole('button', { name: `Delete ${name}` }).waitFor();
    assert.ok(await isInSight('[aria-label^="Delete a-name"]'));
    await page.setViewportSize({ width: 390, height: 860 });
    await page.getByRole('button', { name: `File ${name}` }).click();
    const path = await page.getByTitle(`/home/user/named/${name}`, { exact: true }).boundingBox();
    const button = await page.getByRole('button', { name: 'Download' }).boundingBox();
    assert.ok(path && button && (path.x + path.width <= button.x || path.y + path.height <= button.y));

    await page.setViewportSize({ width: 1280, height: 500 });
    await page.goto('/dashboard/no/such/page');
    await page.getByRole('heading', { level: 1, name: 'There is no such page' }).waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog', { name: 'Go to' }).waitFor();
    for (let down = 0; down < 30; down++) await page.keyboard.press('ArrowDown');
    await page.getByRole('option', { name: 'Settings Operator', selected: true }).waitFor();
    assert.ok(await isInSight('[role=option][aria-selected=true]'));
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor();
    await page.setViewportSize({ width: 1280, height: 860 });
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('how long ago something was, and for how long it is extended, goes by the clock of the platform', async () => {
    const late = await page.context().newPage();
    await late.clock.setSystemTime(Date.now() - 3_600_000);
    await sandbox.setTimeout(600_000);
    await late.goto(`/dashboard/sandboxes/${sandbox.sandboxId}`);
    const about = late.getByRole('region', { name: 'About' });
    await about.locator('time').filter({ hasText: /ago$/ }).first().waitFor();
    const extended = late.waitForResponse(response => response.url().endsWith('/timeout'));
    await late.getByRole('button', { name: '+15 min' }).click();
    assert.equal((await extended).status(), 204);
    const { endAt } = await sandbox.getInfo();
    assert.ok(Math.abs(endAt.getTime() - Date.now() - 25 * 60_000) < 60_000, endAt.toISOString());
    await late.close();
  });
});
