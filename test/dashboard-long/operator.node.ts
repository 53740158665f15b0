import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Sandbox } from 'e2b';
import type { Browser, Page, Route } from 'playwright-core';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { noBrowser, openWindow, seriousFindings, startBrowser, type Window } from '../dashboard/support/browser.ts';

/** A value that must not be shown to anybody. */
const secret = 'never-shown-to-anybody';

/** Pages and the request that each depends on, which is delayed and fails here. */
const pages: { path: string; name: string; of: string }[] = [
  { path: '/operator', name: 'Overview', of: '/nodes' },
  { path: '/operator/nodes', name: 'Nodes', of: '/nodes' },
  { path: '/operator/teams', name: 'Teams and users', of: '/admin/users' },
  { path: '/operator/leftovers', name: 'Left over', of: '/admin/orphans' },
  { path: '/operator/doctor', name: 'Doctor', of: '/admin/doctor' },
  { path: '/operator/settings', name: 'Settings', of: '/admin/settings' },
  { path: '/operator/audit', name: 'Audit', of: '/admin/audit' },
  { path: '/sandboxes', name: 'Sandboxes', of: '/v2/sandboxes' },
  { path: '/sandboxes?show=ended', name: 'Sandboxes', of: '/events/sandboxes' },
  { path: '/templates', name: 'Templates', of: '/templates' },
  { path: '/snapshots', name: 'Snapshots', of: '/snapshots' },
  { path: '/volumes', name: 'Volumes', of: '/volumes' },
  { path: '/secrets', name: 'Secrets', of: '/secrets' },
  { path: '/audit', name: 'Audit', of: '/audit' },
  { path: '/events', name: 'Events', of: '/events' },
  { path: '/usage', name: 'Usage', of: '/limits' },
  { path: '/keys', name: 'API keys', of: '/api-keys' },
  { path: '/members', name: 'Members', of: '/members' },
  { path: '/webhooks', name: 'Webhooks', of: '/events/webhooks' },
];
const operatorPages = pages.filter(({ path }) => path.startsWith('/operator'));

describe('pages for operators, and what pages show when all is not well', { skip: noBrowser ?? false }, () => {
  let platform: TestPlatform;
  let browser: Browser;
  let window: Window;
  let page: Page;

  const heading = (name: string, of = page) => of.getByRole('heading', { level: 1, name, exact: true });
  const show = async (path: string, name: string) => {
    await page.goto(`/dashboard${path}`);
    await heading(name).waitFor();
  };
  const loaded = (of = page) => of.getByLabel('Loading').first().waitFor({ state: 'detached' });
  const create = async () => {
    const body = { templateID: 'base', timeout: 900, secure: true };
    const answer = await platform.api('POST', '/v2/sandboxes', body);
    assert.equal(answer.status, 201);
    return ((await answer.json()) as { sandboxID: string }).sandboxID;
  };

  const running = async () =>
    (await (await platform.api('GET', '/v2/sandboxes?state=running')).json()) as { sandboxID: string }[];

  before(async () => {
    [platform, browser] = await Promise.all([
      startPlatform({ OTEL_EXPORTER_OTLP_HEADERS: `x-token=${secret}` }),
      startBrowser(),
    ]);
    window = await openWindow(browser, platform.ready.url);
    page = window.page;
    await page.goto(platform.ready.dashboard ?? '');
    await page.getByText('Operator · live').waitFor();
  });
  after(async () => {
    await browser?.close();
    await platform?.[Symbol.asyncDispose]();
  });
  beforeEach(() => window.complaints.splice(0));

  test('the doctor says what it has found by trying, and examines again when asked', async () => {
    await show('/operator/doctor', 'Doctor');
    const ran = page.getByRole('row').filter({ hasText: /^oka sandbox/ });
    await ran.waitFor({ timeout: 120_000 });
    await page.getByRole('status').getByText('Sandboxes can run here: one just did.').waitFor();
    const again = page.waitForResponse(response => response.url().endsWith('/admin/doctor'));
    await page.getByRole('button', { name: 'Examine again' }).click();
    await page.getByRole('button', { name: 'Examining…' }).waitFor();
    assert.equal((await again).status(), 200);
    await page.getByRole('button', { name: 'Examine again' }).waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    assert.deepEqual(window.complaints, []);
  });

  test('a finding that keeps sandboxes from running comes first, with its remedy', async () => {
    // No machine with a defect is at hand: the answer is made up, in the doctor's words.
    const findings = [
      { name: 'kernel', status: 'ok', detail: '6.12', needed: true },
      { name: 'gVisor', status: 'limited', detail: 'not installed', needed: false, remedy: 'Install runsc' },
      { name: 'control groups', status: 'missing', detail: 'v1', needed: true, remedy: 'Boot with cgroup v2' },
    ];
    const examinedAt = new Date().toISOString();
    await page.route('**/admin/doctor', route => route.fulfill({ json: { examinedAt, findings } }));
    await show('/operator/doctor', 'Doctor');
    await page.getByRole('alert').getByText('mended: control groups').waitFor();
    const rows = await page.getByRole('row').allTextContents();
    assert.deepEqual(
      rows.slice(1).map(text => /control groups|gVisor|kernel/.exec(text)?.[0]),
      ['control groups', 'gVisor', 'kernel'],
    );
    await page.getByText('Boot with cgroup v2').waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await page.unroute('**/admin/doctor');
    assert.deepEqual(window.complaints, []);
  });

  test('settings are shown with where they come from, and no secret is', async () => {
    await show('/operator/settings', 'Settings');
    const set = page.getByRole('group', { name: 'Settings that are set' });
    await set.getByRole('row').filter({ hasText: 'ATOLL_DATA_DIR' }).getByText('environment').waitFor();
    await set.getByRole('row').filter({ hasText: 'OTEL_EXPORTER_OTLP_HEADERS' }).getByText('(hidden)').waitFor();
    await page.getByRole('region', { name: 'Defaults' }).first().waitFor();
    assert.ok(!(await page.content()).includes(secret));
    const answer = await page.evaluate(async () => (await fetch('/admin/settings')).text());
    assert.ok(answer.includes('(hidden)') && !answer.includes(secret));
    assert.deepEqual(await seriousFindings(page), []);
    assert.deepEqual(window.complaints, []);
  });

  test('the overview tells how long creates take, how reconcilers do, and nodes what they used', async () => {
    await create();
    await show('/operator', 'Overview');
    await loaded();
    await page
      .getByText(/^\d+ ms$|^\d+\.\d s$/)
      .first()
      .waitFor();
    await page.getByText('the last round of each went well').waitFor();
    await page.getByText(/^All \d+, of the process/).click();
    const rounds = page.getByRole('group', { name: 'All reconcilers' });
    await rounds.getByRole('row').filter({ hasText: 'expiry' }).getByText('ok').waitFor();
    await page
      .getByRole('region', { name: 'Disks' })
      .last()
      .getByText(/GiB of/)
      .first()
      .waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    // A failing one needs a fault: this is what the platform would say about it.
    const real = await page.evaluate(
      async () => (await (await fetch('/admin/overview')).json()) as { reconcilers: object[]; creates: object },
    );
    const [first, ...others] = real.reconcilers;
    const causes = [
      { cause: 'no_space', count: 3 },
      { cause: 'internal', count: 1 },
    ];
    const failed = {
      ...real,
      reconcilers: [{ ...first, lastResult: 'failed' }, ...others],
      creates: { ...real.creates, succeeded: 6, failed: 4, causes },
    };
    await page.route('**/admin/overview', route => route.fulfill({ json: failed }));
    await page.reload();
    await page.getByText('1 failed').waitFor();
    await page.getByText('4 of 10 creates failed in the last hour').waitFor();
    await page.getByRole('img', { name: 'no_space: 3 of 4' }).waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await page.unroute('**/admin/overview');
    assert.deepEqual(window.complaints, []);
  });

  test('a node says what it is and has, takes no new ones, is emptied, and works again', async () => {
    const id = await create();
    await show('/operator/nodes', 'Nodes');
    await page.getByRole('group', { name: 'Nodes' }).getByRole('link').click();
    await page.waitForURL(/\/operator\/nodes\/.+/);
    await page.getByRole('img', { name: 'Processor of the node' }).waitFor();
    await page.getByText('with memory', { exact: true }).waitFor();
    await page.getByText(/^\d+ of \d+ started sandboxes wait; /).waitFor();
    const here = page.getByRole('group', { name: 'Sandboxes of the node' });
    await here.getByRole('link', { name: id }).waitFor();
    assert.deepEqual(await seriousFindings(page), []);

    await page.getByRole('button', { name: 'Cordon' }).click();
    await page.getByText('standby', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Take new ones' }).click();
    await page.getByText('ready', { exact: true }).waitFor();

    await page.getByRole('button', { name: 'Drain' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click();
    await page
      .getByRole('status')
      .getByText(/is being emptied as its sandboxes end: \d+ sandbox(es)? left\./)
      .waitFor();
    for (const { sandboxID } of await running()) await platform.api('DELETE', `/sandboxes/${sandboxID}`);
    await page.getByText('The node is empty, and takes no new sandboxes.').waitFor();
    await page.getByRole('button', { name: 'Take new ones' }).click();
    await page.getByText('ready', { exact: true }).waitFor();

    // A single machine belongs to no cluster, and can't be forgotten.
    await page.getByRole('button', { name: /^Forget/ }).click();
    await page
      .getByRole('dialog')
      .getByText(/is lost: 0 running sandboxes, \d+ paused ones?, \d+ volumes? without a copy\./)
      .waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Forget' }).click();
    await page
      .getByText(/cluster/)
      .last()
      .waitFor();
    assert.deepEqual(
      window.complaints.splice(0).filter(text => !text.includes('400')),
      [],
    );
    await page.goto('/dashboard/operator/nodes/none-such');
    await page.getByRole('alert').getByText('"none-such" was not found').waitFor();
  });

  test('what is stuck is shown on the overview', async () => {
    const stuck = {
      sandboxID: 'istuckforlong',
      teamID: 'none',
      nodeID: 'node',
      state: 'pausing',
      since: new Date(Date.now() - 90_000).toISOString(),
    };
    await show('/operator', 'Overview');
    await loaded();
    assert.equal(await page.getByRole('region', { name: 'Stuck' }).count(), 0);
    // None is stuck for a minute without a fault: this is what the platform would say about one.
    await page.route('**/admin/sandboxes/stuck', route => route.fulfill({ json: [stuck] }));
    await page.reload();
    await page.getByRole('row').filter({ hasText: stuck.sandboxID }).getByText('pausing').waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await page.unroute('**/admin/sandboxes/stuck');
    assert.deepEqual(window.complaints, []);
  });

  test('every page says that it waits, why it failed, and goes on when asked to try again', async () => {
    for (const { path, name, of } of pages) {
      const matches = (url: URL) => url.pathname === of;
      const message = `the database of ${of} is away`;
      const failing = (route: Route) => route.fulfill({ status: 500, json: { code: 500, message } });
      let fail = () => {};
      const held = new Promise<void>(resolve => (fail = resolve));
      await page.route(matches, route => held.then(() => failing(route)));
      await show(path, name);
      await page.getByLabel('Loading').first().waitFor();
      fail();
      const alert = page.getByRole('alert').filter({ hasText: message });
      await alert.first().waitFor();
      assert.deepEqual(await seriousFindings(page), [], path);
      await page.unroute(matches);
      await alert.first().getByRole('button', { name: 'Try again' }).click();
      await alert.waitFor({ state: 'detached' });
      await page.getByLabel('Loading').first().waitFor({ state: 'detached', timeout: 120_000 });
    }
    assert.deepEqual(
      window.complaints.filter(text => !text.includes('500')),
      [],
    );
  });

  test('nobody but operators sees their pages, and a viewer may look at the team’s and change nothing', async () => {
    await show('/members', 'Members');
    await page.getByRole('button', { name: 'Invite' }).click();
    const dialog = page.getByRole('dialog', { name: 'Invite somebody' });
    await dialog.getByLabel('For whom').fill('Vera');
    await dialog.getByLabel('viewer').check();
    await dialog.getByRole('button', { name: 'Make the link' }).click();
    const link = (await page.getByRole('dialog').locator('pre').textContent()) ?? '';
    await page.getByRole('button', { name: 'I have kept it' }).click();
    const guest = await openWindow(browser, platform.ready.url);
    await guest.page.goto(link);
    await guest.page.getByLabel('Name').fill('Vera');
    await guest.page.getByLabel('E-mail').fill('vera@example.com');
    await guest.page.getByLabel('New password').fill('correct horse battery');
    await guest.page.getByRole('button', { name: 'Make the account' }).click();
    await guest.page.getByText('Vera · live').waitFor();
    assert.equal(await guest.page.getByRole('link', { name: 'Doctor' }).count(), 0);
    for (const { path, name } of operatorPages) {
      await guest.page.goto(`/dashboard${path}`);
      await heading(name, guest.page).waitFor();
      await guest.page.getByRole('alert').first().waitFor();
    }
    for (const { path, name } of pages.filter(one => !operatorPages.includes(one))) {
      await guest.page.goto(`/dashboard${path}`);
      await heading(name, guest.page).waitFor();
      await loaded(guest.page);
      assert.deepEqual(await seriousFindings(guest.page), [], path);
    }
    assert.deepEqual(
      guest.complaints.filter(text => !/40[13]/.test(text)),
      [],
    );
    await guest.context.close();
  });

  test('a terminal is there again, with what it has shown, after a reload and when the platform was killed', async () => {
    const sandboxId = await create();
    await page.goto(`/dashboard/sandboxes/${sandboxId}/terminal`);
    const connected = page.getByText('connected', { exact: true });
    await connected.waitFor();
    const screen = page.locator('.xterm-rows');
    await page.keyboard.type(
      'export KEPT=yes; clear; printf "first %d\\n" $((6*7)); (sleep 4; printf "\\n%s\\n" later) &\n',
    );
    await screen.getByText('first 42', { exact: true }).waitFor();
    const before = window.complaints.length;

    await platform.kill9();
    await page.getByText('connecting again').waitFor();
    await platform.restart();
    await connected.waitFor({ timeout: 60_000 });
    // Reported while nobody was connected, or just after; in any case once.
    await screen.getByText('later', { exact: true }).waitFor();
    assert.equal(await screen.getByText('first 42', { exact: true }).count(), 1);
    await page.keyboard.type('printf "kept %s\\n" $KEPT\n');
    await screen.getByText('kept yes', { exact: true }).waitFor();
    window.complaints.splice(before);

    // The page is away while the shell writes.
    await page.keyboard.type('printf "begun %d\\n" $((6*8)); (sleep 2; printf "\\n%s\\n" away; touch /tmp/away) &\n');
    // Typed keys are in transit for a moment: they would be lost with the page.
    await screen.getByText('begun 48', { exact: true }).waitFor();
    await page.goto('/dashboard/account');
    await heading('Operator').waitFor();
    const { ready } = platform;
    const connection = { apiKey: ready.apiKey, apiUrl: ready.url, sandboxUrl: ready.url, domain: ready.domain };
    const sandbox = await Sandbox.connect(sandboxId, connection);
    await sandbox.commands.run('until [ -e /tmp/away ]; do sleep 0.05; done');
    await page.goto(`/dashboard/sandboxes/${sandboxId}/terminal`);
    await connected.waitFor();
    await screen.getByText('away', { exact: true }).waitFor();
    for (const text of ['first 42', 'later', 'kept yes'])
      assert.equal(await screen.getByText(text, { exact: true }).count(), 1, text);
    // A program's earlier question to the terminal gets no second answer, which a shell would take for typed input.
    await page.keyboard.type('clear; printf "\\033[6n"; read -rsd R; echo asked\n');
    await screen.getByText('asked', { exact: true }).waitFor();
    await page.reload();
    await connected.waitFor();
    await screen.getByText('asked', { exact: true }).waitFor();
    await page.keyboard.type('echo line is cle""an\n');
    await screen.getByText('line is clean', { exact: true }).waitFor();
    assert.equal(await screen.getByText(/;\d+R/).count(), 0);
    assert.deepEqual(window.complaints, []);
  });
});
