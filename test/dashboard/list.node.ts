import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Sandbox } from 'e2b';
import type { Page } from 'playwright-core';
import { noBrowser, seriousFindings } from './support/browser.ts';
import { shareSignedIn } from './support/signed-in.ts';
import type { SignedIn } from './support/signed-in.ts';

describe('the list of sandboxes', { skip: noBrowser ?? false }, () => {
  const begin = shareSignedIn();
  let signedIn: SignedIn;
  let page: Page;
  let marked: string;
  let plain: string;

  const create = async (body: Record<string, unknown>) => {
    const whole = { templateID: 'base', timeout: 900, secure: true, ...body };
    const response = await signedIn.platform.api('POST', '/v2/sandboxes', whole);
    assert.equal(response.status, 201);
    return ((await response.json()) as { sandboxID: string }).sandboxID;
  };
  const row = (id: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name: id }) });

  before(async () => {
    signedIn = await begin();
    page = signedIn.page;
    [marked, plain] = await Promise.all([create({ metadata: { job: 'night' } }), create({})]);
  });
  beforeEach(() => signedIn.window.complaints.splice(0));
  after(() => signedIn?.[Symbol.asyncDispose]());

  test('a row shows what its sandbox uses, and the head what the team takes of what it may', async () => {
    await page.goto('/dashboard/sandboxes');
    const team = page.getByRole('group', { name: 'The team now' });
    await team.getByText('2 of').waitFor();
    await team.getByText('starts a minute').waitFor();
    const cells = row(marked).getByRole('cell');
    // State, sandbox, template, started, time left; then what it uses.
    for (const [at, unit] of [
      [6, /^\d+ %$/],
      [7, /MiB$/],
      [8, /[KMG]iB$/],
    ] as const)
      await cells.nth(at).getByText(unit).waitFor();
    await row(marked).locator('.sparkline polyline').nth(2).waitFor({ state: 'attached' });
    assert.deepEqual(await seriousFindings(page), []);
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('what is being done with a sandbox shows while it is, and again what it is afterwards', async () => {
    const isList = (url: URL) => url.pathname === '/v2/sandboxes';
    // In a test a pause is over at once, so this is the platform's answer in the middle of one.
    const answer = await signedIn.platform.api('GET', '/v2/sandboxes');
    const pausing = ((await answer.json()) as { sandboxID: string }[]).map(one =>
      one.sandboxID === marked ? { ...one, state: 'paused', transition: 'pausing' } : one,
    );
    await page.route(isList, route => route.fulfill({ json: pausing }));
    await page.goto('/dashboard/sandboxes');
    await row(marked).getByText('pausing', { exact: true }).waitFor();
    await row(marked)
      .getByText(/^pausing \d+s$/)
      .waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    await page.unroute(isList);
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('of chosen sandboxes, one whose agent did not answer at its pause is booted', async () => {
    const isList = (url: URL) => url.pathname === '/v2/sandboxes';
    // No agent stops responding on command, so this is the platform's answer then.
    const answer = await signedIn.platform.api('GET', '/v2/sandboxes');
    const paused = ((await answer.json()) as { sandboxID: string }[]).map(one => ({
      ...one,
      state: 'paused',
      ...(one.sandboxID === marked && { envdUnresponsiveAtPause: true }),
    }));
    await page.route(isList, route => route.fulfill({ json: paused }));
    const asked: Record<string, unknown> = {};
    const isResume = (url: URL) => url.pathname.endsWith('/resume');
    await page.route(isResume, route => {
      asked[new URL(route.request().url()).pathname] = route.request().postDataJSON() as unknown;
      return route.fulfill({ status: 201, json: {} });
    });
    await page.goto('/dashboard/sandboxes');
    for (const id of [marked, plain]) await page.getByLabel(`Choose ${id}`).check();
    await page.getByRole('button', { name: 'Resume 2' }).click();
    await page.getByText('2 resumed').waitFor();
    assert.deepEqual(asked, {
      [`/sandboxes/${marked}/resume`]: { timeout: 300, memory: false },
      [`/sandboxes/${plain}/resume`]: { timeout: 300 },
    });
    await page.unroute(isList);
    await page.unroute(isResume);
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('what another does shows while it is under way, without a question that was not caused by it', async () => {
    const sandbox = await Sandbox.connect(plain, signedIn.options);
    // Writing this much memory takes longer than reporting a change.
    await sandbox.commands.run('head -c 300M /dev/urandom > /dev/shm/state');
    await page.goto('/dashboard/sandboxes');
    await row(plain).getByText('running', { exact: true }).waitFor();
    const asked: string[] = [];
    page.on('request', request => void asked.push(new URL(request.url()).pathname));
    const paused = sandbox.pause();
    await row(plain).getByText('pausing', { exact: true }).waitFor();
    await paused;
    await row(plain).getByText('paused', { exact: true }).waitFor();
    const lists = asked.filter(path => path === '/v2/sandboxes').length;
    // For its beginning, its end, and the event of its end.
    assert.ok(lists >= 2 && lists <= 4, `${lists} lists were asked for`);
    await Sandbox.connect(plain, signedIn.options);
    await row(plain).getByText('running', { exact: true }).waitFor();
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('filters by node and age are in the URL, and a view keeps them under a name', async () => {
    await page.goto('/dashboard/sandboxes');
    const detail = await signedIn.platform.api('GET', `/sandboxes/${marked}`);
    const { nodeID } = (await detail.json()) as { nodeID: string };
    await row(marked).getByRole('button', { name: 'job=night' }).click();
    await row(plain).waitFor({ state: 'detached' });
    await row(marked)
      .getByRole('button', { name: nodeID.slice(0, 8), exact: true })
      .click();
    await page.getByLabel('Started').selectOption('1h');
    await page.waitForURL(url => url.searchParams.get('since') === '1h' && url.searchParams.get('node') === nodeID);
    await page.getByRole('button', { name: 'Save this view' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('Night jobs');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Forget this view' }).waitFor();

    await page.getByRole('button', { name: 'Clear' }).click();
    await row(plain).waitFor();
    await page.reload();
    await row(plain).waitFor();
    await page.getByLabel('Saved views').selectOption('Night jobs');
    await row(plain).waitFor({ state: 'detached' });
    await row(marked).waitFor();
    assert.equal(new URL(page.url()).searchParams.get('since'), '1h');
    await page.goto('/dashboard/sandboxes?node=nowhere');
    await page.getByText('No sandbox matches').waitFor();
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('who filters by keyboard goes on in the same field; what else sets a filter shows in it', async () => {
    await page.goto('/dashboard/sandboxes');
    const [text, metadata] = [page.getByLabel('ID or text'), page.getByLabel('Metadata, as key=value')];
    await text.fill(marked);
    await text.press('Enter');
    await row(plain).waitFor({ state: 'detached' });
    assert.ok(await text.evaluate(field => field.matches(':focus')));
    await row(marked).getByRole('button', { name: 'job=night' }).click();
    await page.waitForURL(url => url.searchParams.get('metadata') === 'job=night');
    assert.deepEqual([await text.inputValue(), await metadata.inputValue()], [marked, 'job=night']);
    await page.getByRole('button', { name: 'Clear' }).click();
    await row(plain).waitFor();
    assert.deepEqual([await text.inputValue(), await metadata.inputValue()], ['', '']);
  });

  test('of the choices above a list, the one that is shown is marked, and no other', async () => {
    for (const [path, group, chosen] of [
      ['/sandboxes', 'State', 'All'],
      ['/sandboxes?show=ended', 'State', 'Ended'],
      ['/usage', 'Range', '24h'],
      ['/usage?range=7d', 'Range', '7d'],
    ] as const) {
      await page.goto(`/dashboard${path}`);
      const marked = page.getByRole('group', { name: group }).locator('[aria-current]');
      await marked.filter({ hasText: chosen }).waitFor();
      assert.deepEqual(await marked.allTextContents(), [chosen], path);
    }
  });

  test('times are told in the zone that was chosen, also after a reload', async () => {
    await page.goto('/dashboard/sandboxes');
    await page.getByRole('button', { name: 'Times: local' }).click();
    const started = row(marked).locator('time').first();
    assert.match((await started.getAttribute('title')) ?? '', /UTC$/);
    await page.reload();
    await page.getByRole('button', { name: 'Times: universal' }).waitFor();
    await page.goto(`/dashboard/sandboxes/${marked}/logs`);
    const told = page.getByRole('log').locator('time').first();
    const at = new Date((await told.getAttribute('datetime')) ?? '');
    assert.equal(await told.textContent(), at.toISOString().slice(11, 19));
    assert.deepEqual(signedIn.window.complaints, []);
  });

  test('form and code of a new sandbox follow each other, with headers that have a secret', async () => {
    assert.ok((await signedIn.platform.api('POST', '/secrets', { name: 'token', value: 'a value' })).ok);
    await page.goto('/dashboard/sandboxes?create=base');
    const sheet = page.getByRole('dialog', { name: 'New sandbox' });
    const code = sheet.getByLabel(/^Code in/);
    await sheet.getByText('Network and volumes').click();
    await sheet.getByRole('button', { name: 'Add a header' }).click();
    await sheet.getByLabel('Host', { exact: true }).fill('api.example.com');
    await sheet.getByLabel('Header', { exact: true }).fill('Authorization');
    await sheet.getByLabel('Value', { exact: true }).fill('Bearer ');
    await sheet.getByLabel('Secret to put in').selectOption('token');
    await page.waitForFunction(`document.querySelector('.code-editor').value.includes('Bearer \${e2b.secrets.token}')`);
    assert.deepEqual(await seriousFindings(page), []);

    // The other way round: what is written in the code appears in the form.
    await sheet.getByRole('button', { name: 'Python' }).click();
    const before = await code.inputValue();
    await code.fill(before.replace('timeout=300', 'timeout=120, metadata={"by": "code"}'));
    assert.equal(await sheet.getByLabel('Time, in seconds').inputValue(), '120');
    assert.equal(await sheet.getByLabel('Metadata').inputValue(), 'by=code');
    await code.fill('Sandbox.create(timeout=sum(1))');
    await sheet.getByText('The form is as it was').waitFor();
    assert.equal(await sheet.getByLabel('Time, in seconds').inputValue(), '120');
    // A change of the form also changes the code.
    await sheet.getByLabel('Time, in seconds').fill('600');
    assert.match(await code.inputValue(), /timeout=600/);
    await sheet.getByRole('button', { name: 'Create' }).click();
    await page.getByText('Timeline').waitFor();
    const id = new URL(page.url()).pathname.split('/').at(-1);
    const detail = (await (await signedIn.platform.api('GET', `/sandboxes/${id}`)).json()) as {
      metadata: object;
      network: { rules: object };
    };
    assert.deepEqual(detail.metadata, { by: 'code' });
    assert.deepEqual(Object.keys(detail.network.rules), ['api.example.com']);
    assert.deepEqual(signedIn.window.complaints, []);
  });
});
