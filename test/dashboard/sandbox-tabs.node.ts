import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Sandbox } from 'e2b';
import type { Page } from 'playwright-core';
import { repository } from '../support/platform.ts';
import { noBrowser, seriousFindings } from './support/browser.ts';
import { shareSignedIn } from './support/signed-in.ts';
import type { SignedIn } from './support/signed-in.ts';

const execute = promisify(execFile);

describe('the tabs of a sandbox', { skip: noBrowser ?? false }, () => {
  const begin = shareSignedIn();
  let signedIn: SignedIn;
  let page: Page;
  let sandbox: Sandbox;

  /** What a click makes the browser save. */
  const download = async (name: string) => {
    const [kept] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name }).click()]);
    return { name: kept.suggestedFilename(), text: await readFile(await kept.path(), 'utf8') };
  };
  const tab = (path: string) => page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}/${path}`);

  before(async () => {
    signedIn = await begin();
    page = signedIn.page;
    sandbox = await Sandbox.create('base', { ...signedIn.options, timeoutMs: 900_000 });
    for (const word of ['first', 'second', 'third']) await sandbox.commands.run(`echo "the ${word} of $((1+2))"`);
  });
  beforeEach(async () => {
    // Pending requests of the previous test's page are answered there.
    await page.goto('about:blank');
    signedIn.window.complaints.splice(0);
  });
  after(() => signedIn?.[Symbol.asyncDispose]());

  test('an action shows its code instead of being done, and the code does it', async () => {
    await tab('');
    await page.getByText('Timeline').waitFor();
    await page.keyboard.press('c');
    await page.getByText('Actions show their code now').waitFor();
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'The code for this' });
    await dialog.locator('pre').getByText('platform.pauseSandbox').waitFor();
    await dialog.getByRole('button', { name: 'Python' }).click();
    await dialog.locator('pre').getByText('platform.pause_sandbox').waitFor();
    await dialog.getByRole('button', { name: 'curl' }).click();
    const code = (await dialog.locator('pre').textContent()) ?? '';
    assert.deepEqual(await seriousFindings(page), []);
    await dialog.getByRole('button', { name: 'Close' }).click();
    // Nothing was done so far.
    assert.ok(await sandbox.isRunning());
    const env = { ...process.env, ATOLL_API_KEY: signedIn.options.apiKey };
    await execute('bash', ['-c', code.replace('curl', 'curl -sSf')], { env });
    await page.getByRole('button', { name: 'Resume', exact: true }).click();
    await dialog.getByRole('button', { name: 'Do it' }).click();
    await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Do them again' }).click();
    await page.getByText('Actions show their code now').waitFor({ state: 'detached' });
    // The page asks a sandbox for its processes until it hears that somebody else has paused it.
    assert.deepEqual(
      signedIn.window.complaints.filter(text => !text.includes('502')),
      [],
    );
  });

  test('of files and commands the code is shown as well, and does it', async () => {
    const dialog = page.getByRole('dialog', { name: 'The code for this' });
    /** Runs the displayed code as a separate program. */
    const runShown = async () => {
      const code = (await dialog.locator('pre').textContent()) ?? '';
      await dialog.getByRole('button', { name: 'Close' }).click();
      const { env } = signedIn.platform;
      await execute(process.execPath, ['--input-type=module', '--eval', code], { env, cwd: repository });
    };
    await tab('files');
    await page.getByText('This folder is empty').or(page.getByRole('table')).first().waitFor();
    await page.keyboard.press('c');
    await page.getByRole('button', { name: 'New folder' }).click();
    const asked = page.getByRole('dialog', { name: 'New folder' });
    await asked.getByLabel('Name').fill('by code');
    await asked.getByRole('button', { name: 'Make' }).click();
    await dialog.getByRole('button', { name: 'Python' }).click();
    await dialog.locator('pre').getByText('sandbox.files.make_dir("/home/user/by code")').waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await dialog.getByRole('button', { name: 'JavaScript' }).click();
    assert.equal(await sandbox.files.exists('/home/user/by code'), false);
    await runShown();
    await page.getByRole('button', { name: 'Folder by code', exact: true }).waitFor();

    const notes = { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('mine') };
    await page.getByLabel('Files to upload').setInputFiles([notes]);
    await dialog.locator('pre').getByText('for (const path of ["notes.txt"])').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    assert.equal(await sandbox.files.exists('/home/user/notes.txt'), false);
    await page.getByRole('button', { name: 'Delete by code' }).click();
    await page.getByRole('dialog', { name: 'Delete by code?' }).getByRole('button', { name: 'Delete' }).click();
    await dialog.locator('pre').getByText('sandbox.files.remove("/home/user/by code")').waitFor();
    await dialog.getByRole('button', { name: 'Do it' }).click();
    await page.getByText('Deleted', { exact: true }).waitFor();
    assert.equal(await sandbox.files.exists('/home/user/by code'), false);

    await sandbox.files.write('/home/user/code.txt', 'first');
    await page.getByRole('button', { name: 'File code.txt', exact: true }).click();
    await page.getByRole('textbox', { name: 'Text of /home/user/code.txt' }).fill('second');
    await page.getByRole('button', { name: 'Save' }).click();
    await runShown();
    assert.equal(await sandbox.files.read('/home/user/code.txt'), 'second');
    await page.getByRole('button', { name: 'Back' }).click();
    await page.getByRole('dialog', { name: 'Leave code.txt unsaved?' }).getByRole('button', { name: 'Leave' }).click();

    const { pid } = await sandbox.commands.run('sleep 600', { background: true, timeoutMs: 0, user: 'root' });
    const tabs = page.getByRole('navigation', { name: 'Sandbox', exact: true });
    await tabs.getByRole('link', { name: 'Overview' }).click();
    await page.getByRole('button', { name: `End process ${pid}` }).click();
    await runShown();
    await page.getByRole('row', { name: new RegExp(`^${pid} `) }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Do them again' }).click();
    await page.getByText('Actions show their code now').waitFor({ state: 'detached' });
    assert.deepEqual(
      signedIn.window.complaints.filter(text => !text.includes('404')),
      [],
    );
  });

  test('of commands that run is told whose they are, and what they use', async () => {
    const [busy, idle] = await Promise.all([
      sandbox.commands.run('while :; do :; done', { background: true, timeoutMs: 0 }),
      sandbox.commands.run('sleep 600', { background: true, timeoutMs: 0, user: 'root' }),
    ]);
    await tab('');
    const cells = (pid: number) => page.getByRole('row', { name: new RegExp(`^${pid} `) }).getByRole('cell');
    // PID, command, user, processor, memory.
    await cells(busy.pid).nth(2).getByText('user', { exact: true }).waitFor();
    await cells(busy.pid)
      .nth(3)
      .getByText(/^[1-9]\d* %$/)
      .waitFor();
    await cells(busy.pid)
      .nth(4)
      .getByText(/[KM]iB$/)
      .waitFor();
    await cells(idle.pid).nth(2).getByText('root', { exact: true }).waitFor();
    await cells(idle.pid).nth(3).getByText('0 %', { exact: true }).waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    for (const [how, { pid }] of [
      ['End', busy],
      ['Kill', idle],
    ] as const) {
      await page.getByRole('button', { name: `${how} process ${pid}` }).click();
      await page.getByRole('row', { name: new RegExp(`^${pid} `) }).waitFor({ state: 'detached' });
    }
    // One of them may end between two requests.
    assert.deepEqual(
      signedIn.window.complaints.filter(text => !text.includes('404')),
      [],
    );
  });

  test('what a command prints is watched from the list of commands, and nothing goes to it', async () => {
    const { pid } = await sandbox.commands.run(
      'n=0; while sleep 0.2; do n=$((n+1)); echo "line $n"; echo "to the right of nothing"; done',
      { background: true, timeoutMs: 0 },
    );
    await tab('');
    await page.getByRole('link', { name: `Watch process ${pid}` }).click();
    await page.waitForURL(url => url.searchParams.get('watch') === String(pid));
    await page.getByText('You watch a process').waitFor();
    const rows = page.locator('.xterm-rows > div');
    await rows
      .filter({ hasText: /^line \d+\s*$/ })
      .first()
      .waitFor();
    await rows
      .filter({ hasText: /^to the right of nothing/ })
      .first()
      .waitFor();
    await sandbox.commands.kill(pid);
    await page
      .getByText(/signal|killed|ended/i)
      .first()
      .waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('the overview says what is used now, sets the time, and tells of a pause what it kept', async () => {
    const other = await Sandbox.create('base', { ...signedIn.options, timeoutMs: 900_000 });
    await page.goto(`/dashboard/sandboxes/${other.sandboxId}`);
    const now = page.getByRole('group', { name: 'What it uses now' });
    for (const text of [/^\d+ % of \d CPU$/, /^[\d.]+ [KM]iB of [\d.]+ [MG]iB$/])
      await now.getByText(text).first().waitFor();
    await page.getByRole('button', { name: 'Set time' }).click();
    await page.getByLabel('Minutes from now').fill('120');
    await page.getByRole('button', { name: 'Set', exact: true }).click();
    await page.getByText('Time set').waitFor();
    const { endAt } = await other.getInfo();
    assert.ok(Math.abs(endAt.getTime() - Date.now() - 120 * 60_000) < 60_000, endAt.toISOString());
    await page.getByRole('button', { name: 'Pause files' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Pause files' }).click();
    await page.getByText(/^Paused with its files alone, after \d+s$/).waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await other.kill();
    assert.deepEqual(
      signedIn.window.complaints.filter(text => !/404|502/.test(text)),
      [],
    );
  });

  test('logs are found by what they are about and by an expression, linked to, and downloaded', async () => {
    await tab('logs');
    const log = page.getByRole('log');
    await log.getByText('the third of 3').first().waitFor();
    // A JSON message unfolds.
    await sandbox.commands.run(`echo '{"deep":{"n":7}}'`);
    await log.getByText('{"deep":{"n":7}}', { exact: true }).click();
    await log.locator('pre').getByText('"n": 7').waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await page.getByLabel('About what').selectOption('process');
    await log.getByText('created from template').waitFor({ state: 'detached' });
    await page.getByLabel('Text in the message').fill('(first|third) of \\d$');
    await page.getByLabel('Expression').check();
    await page.getByLabel('Text in the message').press('Enter');
    await log.getByText('the second of 3').first().waitFor({ state: 'detached' });
    await log.getByText('the first of 3').first().waitFor();
    const { name, text } = await download('Download');
    assert.equal(name, `${sandbox.sandboxId}.log`);
    assert.match(text, /process .*the first of 3\n/);
    assert.doesNotMatch(text, /second|created from/);

    // The surroundings of a hit are shown beside it, and long lines are cut or wrapped.
    await page.getByLabel('With what is around it').selectOption('3');
    await log.locator('li.beside').getByText('the second of 3').first().waitFor();
    await page.getByLabel('Wrap').uncheck();
    await page.waitForURL(url => url.searchParams.get('wrap') === 'false' && url.searchParams.get('around') === '3');
    await page.reload();
    await log.locator('li.beside').getByText('the second of 3').first().waitFor();
    assert.equal(await page.evaluate(`getComputedStyle(document.querySelector('.log .text')).whiteSpace`), 'pre');
    assert.deepEqual(await seriousFindings(page), []);
    await page.getByLabel('Wrap').check();
    await page.getByLabel('With what is around it').selectOption('Hits alone');
    await log.getByText('the second of 3').first().waitFor({ state: 'detached' });

    // A link to a line shows it with what came before and after, with filters or without.
    await log.getByRole('listitem').first().hover();
    await log.getByRole('link', { name: 'Link to this line' }).first().click();
    await log.locator('li[aria-current]').getByText('the first of 3').waitFor();
    await page.reload();
    await log.locator('li[aria-current]').getByText('the first of 3').waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await page.getByRole('button', { name: 'To what is logged now' }).click();
    await log.locator('li[aria-current]').waitFor({ state: 'detached' });
    await page.getByLabel('Text in the message').fill('(');
    assert.ok(await page.getByRole('button', { name: 'Find' }).isDisabled());
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('metrics are looked at closer by a brush and by the keyboard, and kept as a table', async () => {
    await tab('metrics');
    const plot = page.getByRole('img', { name: 'Processor' });
    await plot.waitFor();
    const { name, text } = await download('CSV');
    assert.equal(name, `${sandbox.sandboxId}-metrics.csv`);
    const [head, line] = text.split('\r\n');
    assert.equal(head, 'timestamp,cpuUsedPct,memUsed,memCache,memTotal,diskUsed,diskTotal');
    assert.match(line ?? '', /^20\d\d-[^,]+,[\d.]+,\d+,\d+,\d+,\d+,\d+$/);

    const box = await plot.locator('.u-over').boundingBox();
    assert.ok(box);
    await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.9, box.y + 40, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(url => url.searchParams.has('from'));
    const span = () => {
      const { searchParams } = new URL(page.url());
      return Number(searchParams.get('to')) - Number(searchParams.get('from'));
    };
    const brushed = span();
    assert.ok(brushed < 900 && brushed > 30, `${brushed} s`);
    await page.getByRole('button', { name: 'Wider' }).focus();
    await page.keyboard.press('Enter');
    await page.waitForURL(() => span() > brushed);
    await page.getByRole('button', { name: '1h', exact: true }).click();
    await page.waitForURL(url => !url.searchParams.has('from'));
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('terminals stand beside each other, are searched, have a size of their own, and are watched by others', async () => {
    await tab('terminal');
    const shown = page.locator('.xterm-rows:visible');
    await page.getByText('connected', { exact: true }).waitFor();
    await page.keyboard.type('printf "needle %d\\n" $((40+2)); seq 200 | tail -3\n');
    await shown.getByText('needle 42', { exact: true }).waitFor();
    // A 24-bit colour, which xterm writes as a style of its own.
    await page.keyboard.type('printf "\\e[38;2;1;2;3mtrue%s\\e[0m\\n" colour\n');
    await shown
      .locator('span')
      .filter({ hasText: /^truecolour$/ })
      .waitFor();
    const colours = `[...document.querySelectorAll('.xterm-rows span')]
      .filter(one => one.textContent === 'truecolour').map(one => getComputedStyle(one).color)`;
    assert.deepEqual(await page.evaluate(colours), ['rgb(1, 2, 3)']);
    await page.getByRole('button', { name: 'Split' }).click();
    await page.getByText('connected', { exact: true }).nth(1).waitFor();
    assert.equal(await page.locator('.terminal-box:visible').count(), 2);
    await page.reload();
    await page.getByText('connected', { exact: true }).nth(1).waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await page.getByRole('button', { name: 'One alone' }).click();
    await page.locator('.terminal-box:visible').nth(1).waitFor({ state: 'detached' });

    await page.getByRole('button', { name: 'Search in the terminal' }).click();
    await page.keyboard.type('needle 42');
    await page.keyboard.press('Enter');
    await page.locator('.terminal-box:visible .xterm-selection > div').first().waitFor({ state: 'attached' });
    await page.getByLabel('Text in the terminal').fill('nowhere at all');
    await page.keyboard.press('Enter');
    await page.getByText('It is not there').waitFor();
    await page.keyboard.press('Escape');

    const font = () =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('.terminal-box .xterm-rows')).fontSize`);
    const before = await font();
    await page.getByRole('button', { name: 'Larger' }).click();
    assert.equal(Number.parseInt(await font()), Number.parseInt(before) + 1);

    await page.getByRole('button', { name: 'Share this shell' }).click();
    await page.getByText('A link is copied').waitFor();
    const link = await page.evaluate<string>('navigator.clipboard.readText()');
    const other = await signedIn.window.context.newPage();
    await other.goto(link);
    const watched = other.locator('.xterm-rows');
    await watched.getByText('needle 42', { exact: true }).waitFor();
    // A watcher's keys go nowhere, and the watcher sees what the other one types.
    await other.locator('.terminal-box').click();
    await other.keyboard.type('exit\n');
    await page.bringToFront();
    await page.locator('.terminal-box:visible').click();
    await page.keyboard.type('printf "still %s\\n" here\n');
    await other.bringToFront();
    await watched.getByText('still here', { exact: true }).waitFor();
    assert.doesNotMatch((await watched.textContent()) ?? '', /exit/);
    await other.close();
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('a policy that somebody else changes is shown, and what is typed meanwhile neither lost nor saved unawares', async () => {
    const path = `/sandboxes/${sandbox.sandboxId}/network`;
    const change = (denyOut: string[]) => signedIn.platform.api('PUT', path, { denyOut });
    const denied = page.getByLabel('Denied: addresses');
    const shows = async (text: string) => {
      for (const until = Date.now() + 10_000; (await denied.inputValue()) !== text; await page.waitForTimeout(50))
        assert.ok(Date.now() < until, `${await denied.inputValue()} is shown, not ${text}`);
    };
    const save = async () => {
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('The policy holds from now on').last().waitFor();
    };
    const warning = page.getByText('The policy was changed since you began');
    await change(['192.0.2.1/32']);
    await tab('network');
    await shows('192.0.2.1/32');
    await change(['192.0.2.2/32']);
    await shows('192.0.2.2/32');

    await denied.fill('192.0.2.3/32');
    await change(['192.0.2.4/32']);
    await warning.waitFor();
    assert.equal(await denied.inputValue(), '192.0.2.3/32');
    assert.deepEqual(await seriousFindings(page), []);
    await page.getByRole('button', { name: 'Show it as it is' }).click();
    await shows('192.0.2.4/32');

    await denied.fill('192.0.2.5/32\n');
    await save();
    await shows('192.0.2.5/32');
    assert.equal(await warning.count(), 0);
    await change([]);
    await shows('');
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('the tree of forks opens two generations and the way to this sandbox, and others when asked', async () => {
    const forksOf: Record<string, string[]> = {
      first: ['parent', 'aunt'],
      parent: [sandbox.sandboxId, 'sister'],
      aunt: ['cousin'],
      sister: ['niece'],
      [sandbox.sandboxId]: ['child'],
      child: ['grandchild'],
    };
    const parentOf = Object.fromEntries(Object.entries(forksOf).flatMap(([of, forks]) => forks.map(id => [id, of])));
    const asked: string[] = [];
    await page.route(
      url => url.pathname.startsWith('/events/sandboxes/') && /created|forked/.test(url.search),
      route => {
        const url = new URL(route.request().url());
        const id = url.pathname.split('/').at(-1) ?? '';
        const isOrigin = url.searchParams.get('types') === 'sandbox.lifecycle.created';
        if (!isOrigin) asked.push(id);
        const from = parentOf[id];
        const data = isOrigin
          ? from
            ? [{ forked_from: from }]
            : []
          : (forksOf[id] ?? []).map(fork_id => ({ fork_id }));
        const event = (event_data: object, at: number) => ({
          id: `${id}-${at}`,
          timestamp: new Date(0),
          type: 'x',
          event_data,
        });
        return route.fulfill({ json: data.map(event) });
      },
    );
    await tab('');
    const tree = page.getByRole('list', { name: 'Snapshots and forks' });
    const item = (id: string) =>
      tree
        .getByRole('listitem')
        .filter({ has: page.getByText(id, { exact: true }) })
        .last();
    const shown = ['parent', 'aunt', sandbox.sandboxId, 'sister', 'cousin', 'child'];
    for (const id of ['first', ...shown]) await tree.getByText(id, { exact: true }).waitFor();
    assert.equal(await tree.getByText('this one').count(), 1);
    // Nothing is requested of the others.
    assert.deepEqual([...new Set(asked)].toSorted(), ['first', 'parent', 'aunt', sandbox.sandboxId].toSorted());
    const more = tree.getByRole('button', { name: 'What came of it' });
    assert.equal(await more.count(), 3);
    await item('sister').getByRole('button', { name: 'What came of it' }).click();
    await tree.getByText('niece', { exact: true }).waitFor();
    assert.equal(await tree.getByText('grandchild', { exact: true }).count(), 0);
    assert.deepEqual([await more.count(), asked.includes('niece')], [3, false]);
    await page.unrouteAll();
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('the steps of a build are listed with their time, and beside those of another build', async () => {
    const build = async (steps: string[]) => {
      const registered = await signedIn.platform.api('POST', '/v3/templates', {
        name: 'compared',
        cpuCount: 1,
        memoryMB: 512,
      });
      const { templateID, buildID } = (await registered.json()) as { templateID: string; buildID: string };
      const body = { fromTemplate: 'base', steps: steps.map(text => ({ type: 'RUN', args: [text] })) };
      await signedIn.platform.api('POST', `/v2/templates/${templateID}/builds/${buildID}`, body);
      await page.goto(`/dashboard/templates/${templateID}/builds/${buildID}`);
      await page.getByText('ready', { exact: true }).first().waitFor({ timeout: 90_000 });
      return buildID;
    };
    const first = await build(['echo one', 'echo two']);
    await build(['echo one', 'echo three']);
    const steps = page.getByRole('region', { name: 'Steps' }).last();
    const row = (text: string) => steps.getByRole('row').filter({ hasText: text });
    await row('echo one').getByText('cached').waitFor();
    await page.getByLabel('Compare with').selectOption(first);
    await row('echo two').getByText('only there').waitFor();
    await row('echo three').getByText('only here').waitFor();
    await page.reload();
    await row('echo two').getByText('only there').waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    assert.deepEqual(signedIn.window.complaints, []);
  });
});
