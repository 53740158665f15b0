import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Sandbox } from 'e2b';
import type { Browser, Locator, Page } from 'playwright-core';
import type { TestPlatform } from '../support/platform.ts';
import { serveHostilePage } from './support/hostile-page.ts';
import { noBrowser, openWindow, seriousFindings, testDomain, type Window } from './support/browser.ts';
import { shareSignedIn } from './support/signed-in.ts';
import type { SignedIn } from './support/signed-in.ts';

/** A text that would run if it became markup or script anywhere. */
const hostile = `"><img src=x onerror=alert(1)><script>alert(2)</script>`;

/** Scripts that load before the first page, compressed. */
const entryBytesMax = 180 * 1024;

/** Every page that needs no particular thing to show, with its name. */
const pages: [path: string, name: string][] = [
  ['/sandboxes', 'Sandboxes'],
  ['/sandboxes?show=ended', 'Sandboxes'],
  ['/sandboxes?show=paused&template=nothing', 'Sandboxes'],
  ['/templates', 'Templates'],
  ['/snapshots', 'Snapshots'],
  ['/volumes', 'Volumes'],
  ['/secrets', 'Secrets'],
  ['/events', 'Events'],
  ['/usage', 'Usage'],
  ['/audit', 'Audit'],
  ['/keys', 'API keys'],
  ['/members', 'Members'],
  ['/webhooks', 'Webhooks'],
  ['/account', 'Operator'],
  ['/operator', 'Overview'],
  ['/operator/nodes', 'Nodes'],
  ['/operator/teams', 'Teams and users'],
  ['/operator/leftovers', 'Left over'],
  ['/operator/settings', 'Settings'],
  ['/operator/audit', 'Audit'],
];

describe('the dashboard in a browser', { skip: noBrowser ?? false }, () => {
  const begin = shareSignedIn();
  let signedIn: SignedIn;
  let platform: TestPlatform;
  let browser: Browser;
  let window: Window;
  let page: Page;
  let sandboxId: string;

  const create = async (body: Record<string, unknown> = {}) => {
    const response = await platform.api('POST', '/v2/sandboxes', {
      templateID: 'base',
      timeout: 600,
      secure: true,
      ...body,
    });
    assert.equal(response.status, 201);
    return ((await response.json()) as { sandboxID: string }).sandboxID;
  };
  /** Presses the mouse in the middle of something and keeps it down. */
  const press = async (target: Locator) => {
    await target.scrollIntoViewIfNeeded();
    const box = await target.boundingBox();
    assert.ok(box);
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.down();
  };
  const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true });
  /** Opens a page and waits until all of it is there. */
  const show = async (path: string, name: string) => {
    await page.goto(`/dashboard${path}`);
    await heading(name).waitFor();
    await page.getByLabel('Loading').first().waitFor({ state: 'detached' });
  };

  before(async () => {
    signedIn = await begin();
    ({ platform, browser, window, page } = signedIn);
  });
  after(() => signedIn?.[Symbol.asyncDispose]());
  beforeEach(() => window.complaints.splice(0));

  test('the link of `atoll up` signs in once, and an empty team shows how to begin', async () => {
    const link = platform.ready.dashboard ?? '';
    const first = await openWindow(browser, platform.ready.url);
    await first.page.goto(link);
    await first.page.getByRole('heading', { level: 1, name: 'Sandboxes' }).waitFor();
    await first.page.getByText('Nothing runs yet').waitFor();
    assert.ok(!first.page.url().includes('#'));
    await first.page.getByText('Operator · live').waitFor();
    assert.deepEqual(
      first.complaints.filter(text => !text.includes('401')),
      [],
    );

    const other = await openWindow(browser, platform.ready.url);
    await other.page.goto(link);
    await other.page.getByRole('alert').getByText('That does not sign in').waitFor();
    await other.page.goto('/dashboard/secrets');
    await other.page.getByRole('heading', { name: 'Sign in to Atoll' }).waitFor();
    for (const { context } of [first, other]) await context.close();
  });

  test('every page shows itself in both themes, and axe finds nothing serious', async () => {
    const all: string[] = [];
    for (const [path, name] of pages) {
      await show(path, name);
      for (const colorScheme of ['dark', 'light'] as const) {
        await page.emulateMedia({ colorScheme });
        all.push(...(await seriousFindings(page)).map(finding => `${path} ${colorScheme} ${finding}`));
      }
    }
    assert.deepEqual(all, []);
    assert.deepEqual(window.complaints, []);
  });

  test('a form creates a sandbox and shows its code; another one appears by itself', async () => {
    await page.goto('/dashboard/sandboxes?create=base');
    const sheet = page.getByRole('dialog', { name: 'New sandbox' });
    await sheet.getByLabel('Metadata').fill(`name=${hostile}`);
    await sheet.getByText('Network and volumes').click();
    await sheet.getByLabel('Denied').fill('198.51.100.0/24');
    await sheet.getByRole('button', { name: 'curl' }).click();
    assert.match(await sheet.getByLabel('Code in curl').inputValue(), /v2\/sandboxes[^]*198\.51\.100\.0\/24/);
    assert.deepEqual(await seriousFindings(page), []);
    await sheet.getByRole('button', { name: 'Create' }).click();
    await page.getByText('Timeline').waitFor();
    sandboxId = page.url().split('/').at(-1) ?? '';
    await page.getByText(`name=${hostile}`).first().waitFor();
    await page.getByText('Created', { exact: true }).waitFor();
    assert.deepEqual(await seriousFindings(page), []);

    await page.goto('/dashboard/sandboxes');
    await page.getByRole('link', { name: sandboxId }).waitFor();
    const other = await create();
    await page.getByRole('link', { name: other }).waitFor({ timeout: 5_000 });
    await page.getByLabel(`Choose ${other}`).check();
    // Whatever changes between press and release, a click hits its target.
    await press(page.getByRole('button', { name: 'Kill 1' }));
    const third = await create();
    await page.getByRole('link', { name: third }).waitFor();
    await page.mouse.up();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await press(page.getByLabel(`Choose ${other}`));
    const fourth = await create();
    await page.getByText('1 new, shown when the pointer rests').waitFor();
    await page.mouse.up();
    await page.getByLabel(`Choose ${other}`).and(page.locator(':not(:checked)')).waitFor();
    await page.getByRole('link', { name: fourth }).waitFor();
    for (const id of [other, third, fourth]) await page.getByLabel(`Choose ${id}`).check();
    await page.getByRole('button', { name: 'Kill 3' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Kill' }).click();
    await page.getByRole('link', { name: other }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Ended' }).click();
    await page.getByRole('row').filter({ hasText: other }).getByText('killed on request').waitFor();
    assert.deepEqual(window.complaints, []);
  });

  test('a terminal runs what is typed, and is the same after a reload', async () => {
    await page.goto(`/dashboard/sandboxes/${sandboxId}/terminal`);
    await page.getByText('connected', { exact: true }).waitFor();
    await page.keyboard.type('export KEPT=yes; printf "sum %d\\n" $((6*7)); stty size\n');
    const screen = page.locator('.xterm-rows');
    await screen.getByText('sum 42', { exact: true }).waitFor();
    await page.reload();
    await page.getByText('connected', { exact: true }).waitFor();
    await screen.getByText('sum 42', { exact: true }).waitFor();
    await page.keyboard.type('printf "kept %s\\n" $KEPT\n');
    await screen.getByText('kept yes', { exact: true }).waitFor();

    // Each tab is a shell of its own, and all of them come back.
    await page.getByRole('button', { name: 'New shell' }).click();
    await page.getByText('connected', { exact: true }).and(page.locator(':visible')).waitFor();
    const visible = page.locator('.xterm-rows:visible');
    await page.keyboard.type('printf "other %s.\\n" "$KEPT"\n');
    await visible.getByText('other .', { exact: true }).waitFor();
    await page.reload();
    await visible.getByText('other .', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Shell 1' }).click();
    await visible.getByText('kept yes', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Shell 2' }).click();
    await page.getByRole('button', { name: 'End this shell' }).and(page.locator(':visible')).click();
    await page.getByRole('button', { name: 'Shell 2' }).waitFor({ state: 'detached' });
    await visible.getByText('kept yes', { exact: true }).waitFor();

    // A shell of another user starts where requested, also after a reload.
    await page.getByRole('button', { name: 'Shell as' }).click();
    const asked = page.getByRole('dialog', { name: 'New shell' });
    await asked.getByLabel('User', { exact: true }).fill('root');
    await asked.getByLabel('Directory').fill('/var/log');
    assert.deepEqual(await seriousFindings(page), []);
    await asked.getByRole('button', { name: 'Open' }).click();
    await page.getByRole('button', { name: 'Shell 2, root' }).waitFor();
    await page.getByText('connected', { exact: true }).and(page.locator(':visible')).waitFor();
    await page.keyboard.type('printf "%s in %s.\\n" "$(whoami)" "$PWD"\n');
    await visible.getByText('root in /var/log.', { exact: true }).waitFor();
    await page.reload();
    await visible.getByText('root in /var/log.', { exact: true }).waitFor();
    assert.deepEqual(window.complaints, []);
  });

  test('files are uploaded, edited and listed, whatever they are named', async () => {
    await page.goto(`/dashboard/sandboxes/${sandboxId}/files`);
    const name = hostile.replaceAll('/', '_');
    await page
      .getByLabel('Files to upload')
      .setInputFiles([{ name, mimeType: 'text/html', buffer: Buffer.from(`<b>${hostile}</b>`) }]);
    await page.getByRole('button', { name }).first().click();
    const editor = page.getByRole('textbox');
    assert.equal(await editor.inputValue(), `<b>${hostile}</b>`);
    await editor.fill('changed ☃');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved', { exact: true }).waitFor();
    await page.reload();
    await editor.waitFor();
    assert.equal(await editor.inputValue(), 'changed ☃');
    assert.deepEqual(window.complaints, []);
  });

  test('logs, metrics and the network of a sandbox show, and a policy is changed', async () => {
    await page.goto(`/dashboard/sandboxes/${sandboxId}/logs`);
    await page.getByRole('log').getByText('created from template').waitFor();
    const asked: string[] = [];
    const listen = (request: { url(): string }) => asked.push(new URL(request.url()).pathname);
    page.on('request', listen);
    const { ready } = platform;
    const connection = { apiKey: ready.apiKey, apiUrl: ready.url, sandboxUrl: ready.url, domain: ready.domain };
    const sandbox = await Sandbox.connect(sandboxId, connection);
    // It is announced without being asked for.
    await sandbox.commands.run(`echo 'told \x1b[31mlive ${hostile}' | tr -d "'"`);
    await page.getByRole('log').getByText('told ').last().waitFor();
    page.off('request', listen);
    assert.deepEqual(
      asked.filter(path => path.includes('/logs')),
      [],
    );
    assert.deepEqual(await seriousFindings(page), []);
    await page.goto(`/dashboard/sandboxes/${sandboxId}/metrics`);
    await page.getByRole('img', { name: 'Processor' }).or(page.getByText('Nothing was measured')).waitFor();
    await page.goto(`/dashboard/sandboxes/${sandboxId}/network`);
    await page.getByLabel('Denied: addresses').fill('192.0.2.0/24');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The policy holds from now on').waitFor();
    await page.getByLabel('Would this pass?').fill('192.0.2.9');
    await page.getByRole('button', { name: 'Ask' }).click();
    await page.getByRole('status').getByText('by denyOut 192.0.2.0/24').waitFor();
    await page.getByText('Nothing was refused').waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    const detail = (await (await platform.api('GET', `/sandboxes/${sandboxId}`)).json()) as { network?: object };
    assert.deepEqual((detail.network as { denyOut?: string[] }).denyOut, ['192.0.2.0/24']);
    assert.deepEqual(window.complaints, []);
  });

  test('the log of a build is shown as it is written, and how the build ended', async () => {
    const body = { name: 'built-here', cpuCount: 1, memoryMB: 512 };
    const registered = await platform.api('POST', '/v3/templates', body);
    const { templateID, buildID } = (await registered.json()) as { templateID: string; buildID: string };
    await page.goto(`/dashboard/templates/${templateID}/builds/${buildID}`);
    await page.getByText('waiting', { exact: true }).waitFor();
    const steps = [
      { type: 'RUN', args: [`printf 'said %s\\n' early; sleep 2; echo '${hostile}'`] },
      { type: 'RUN', args: ['echo wrong; exit 3'] },
    ];
    await platform.api('POST', `/v2/templates/${templateID}/builds/${buildID}`, { fromTemplate: 'base', steps });
    const log = page.getByRole('log', { name: 'Log of the build' });
    await log.getByText('said early', { exact: true }).waitFor();
    await page.getByText('building', { exact: true }).waitFor();
    await log.getByText(hostile, { exact: true }).waitFor();
    await page.getByRole('alert').getByText('Step 2').waitFor();
    await page.getByText('error', { exact: true }).first().waitFor();
    assert.deepEqual(await seriousFindings(page), []);
    assert.deepEqual(window.complaints, []);
  });

  test('what is refused says so in the words of the API', async () => {
    await page.goto('/dashboard/sandboxes?create=no-such-template');
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
    await page.getByRole('status').getByText('no-such-template').waitFor();
    await page.goto('/dashboard/sandboxes/inosuchsandbox0000000');
    await page.getByRole('alert').getByText('has no sandbox').waitFor();
  });

  test('the first page takes no more than its budget', async () => {
    const other = await openWindow(browser, platform.ready.url);
    const scripts: Promise<Buffer>[] = [];
    other.page.on('response', response => {
      if (response.url().endsWith('.js')) scripts.push(response.body());
    });
    await other.page.goto('/dashboard/signin');
    await other.page.getByRole('heading', { name: 'Sign in to Atoll' }).waitFor();
    const sizes = (await Promise.all(scripts)).map(script => gzipSync(script).length);
    assert.ok(sizes.length > 0);
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    assert.ok(bytes <= entryBytesMax, `${bytes} bytes of scripts`);
    await other.context.close();
  });

  test('the keyboard alone goes everywhere', async () => {
    await page.goto('/dashboard/sandboxes');
    await heading('Sandboxes').waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('t');
    await heading('Templates').waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('audit');
    await page.keyboard.press('Enter');
    await heading('Audit').waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.deepEqual(window.complaints, []);
  });

  test('an API key gets another name', async () => {
    await show('/keys', 'API keys');
    await page
      .getByRole('button', { name: /^Rename / })
      .first()
      .click();
    await page.getByLabel('Name: what it is for').fill('for the nightly run');
    await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click();
    await page.getByRole('row').filter({ hasText: 'for the nightly run' }).waitFor();
    assert.deepEqual(window.complaints, []);
  });

  test('who made an API key is told, also without an e-mail address', async () => {
    const isList = (url: URL) => url.pathname === '/api-keys';
    const id = '3b241101-e2bb-4255-8caf-4136c566a962';
    const mask = { prefix: 'e2b_', valueLength: 40, maskedValuePrefix: 'ab', maskedValueSuffix: 'yz' };
    const key = { mask, createdAt: new Date().toISOString(), lastUsed: null };
    const keys = [
      { ...key, id, name: 'of somebody', createdBy: { id, email: null } },
      { ...key, id: 'another', name: 'of nobody', createdBy: null },
    ];
    await page.route(isList, route => route.fulfill({ json: keys }));
    await show('/keys', 'API keys');
    await page.getByRole('row').filter({ hasText: 'of somebody' }).getByText(id).waitFor();
    await page.getByRole('row').filter({ hasText: 'of nobody' }).getByText('the platform').waitFor();
    await page.unroute(isList);
    assert.deepEqual(window.complaints, []);
  });

  test('addresses that clients print lead to their page', async () => {
    await page.goto('/dashboard?tab=keys');
    await heading('API keys').waitFor();
    await page.goto(`/dashboard/inspect/sandbox/${sandboxId}`);
    await page.getByText('Timeline').waitFor();
    assert.deepEqual(window.complaints, []);
  });

  test('a narrow window shows the menu and nothing beside the page', async () => {
    await page.setViewportSize({ width: 390, height: 800 });
    for (const [path, name] of pages) {
      await show(path, name);
      const beside = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      assert.deepEqual({ path, beside }, { path, beside: 0 });
    }
    await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('link', { name: 'Volumes' }).click();
    await heading('Volumes').waitFor();
    await page.setViewportSize({ width: 1280, height: 860 });
  });

  test('a page of a sandbox, of the same site, gets nothing of the session and changes nothing', async () => {
    const newLink = () =>
      page.evaluate(async () => {
        const response = await fetch('/admin/sign-in-links', { method: 'POST' });
        return ((await response.json()) as { path: string }).path;
      });
    const origin = `https://${testDomain}:${new URL(platform.ready.tls?.url ?? '').port}`;
    const own = await openWindow(browser, origin);
    await own.page.goto(await newLink());
    await own.page.getByText('Operator · live').waitFor();
    const look = () =>
      own.page.evaluate(async () => {
        const [session, teams] = await Promise.all([fetch('/session'), fetch('/admin/teams')]);
        return { status: session.status, teams: ((await teams.json()) as { name: string }[]).map(({ name }) => name) };
      });
    const before = await look();
    assert.equal(before.status, 200);
    const cookie = (await own.context.cookies()).find(({ name }) => name === '__Host-atoll');

    await using hostile = await serveHostilePage(platform, { dashboard: origin, link: await newLink() });
    const victim = await own.context.newPage();
    const popup = own.context.waitForEvent('page');
    await victim.goto(hostile.url);
    await victim.waitForFunction('globalThis.done === true');
    assert.deepEqual(await victim.evaluate('globalThis.succeeded'), []);
    assert.equal(await victim.evaluate('globalThis.tried'), 15);
    const framed = victim.frames().filter(frame => frame.name() === 'dashboard');
    assert.deepEqual(
      framed.map(frame => frame.url()),
      ['chrome-error://chromewebdata/'],
    );
    // A link on the hostile page does not sign in a user who is signed in already, and the two windows know nothing of
    // each other.
    const opened = await popup;
    await opened.getByRole('dialog', { name: 'Sign in by this link?' }).waitFor();
    assert.equal(await opened.evaluate('opener'), null);

    assert.deepEqual(await look(), before);
    assert.equal((await own.context.cookies(origin)).find(({ name }) => name === '__Host-atoll')?.value, cookie?.value);
    const seen = await hostile.requests();
    assert.ok(seen.includes('GET /page'), seen);
    assert.ok(cookie && !seen.includes(cookie.value));
    await own.context.close();
  });

  test('who is invited makes an account, sees as a viewer, and may do more from the moment when the role allows it', async () => {
    await show('/members', 'Members');
    await page.getByRole('button', { name: 'Invite' }).click();
    const dialog = page.getByRole('dialog', { name: 'Invite somebody' });
    await dialog.getByLabel('For whom').fill(hostile);
    await dialog.getByLabel('viewer').check();
    await dialog.getByRole('button', { name: 'Make the link' }).click();
    const link = (await page.getByRole('dialog').locator('pre').textContent()) ?? '';
    await page.getByRole('button', { name: 'I have kept it' }).click();

    const guest = await openWindow(browser, platform.ready.url);
    await guest.page.goto(link);
    await guest.page.getByLabel('Name').fill('Grace');
    await guest.page.getByLabel('E-mail').fill('grace@example.com');
    await guest.page.getByLabel('New password').fill('correct horse battery');
    assert.deepEqual(await seriousFindings(guest.page), []);
    await guest.page.getByRole('button', { name: 'Make the account' }).click();
    await guest.page.getByText('Grace · live').waitFor();
    await guest.page.goto('/dashboard/sandboxes?create=base');
    await guest.page.getByRole('link', { name: sandboxId }).waitFor();
    assert.equal(await guest.page.getByRole('dialog').count(), 0);
    await guest.page.getByRole('link', { name: sandboxId }).click();
    const about = guest.page.getByRole('region', { name: 'About' });
    await about.getByText('At its end').waitFor();
    // It has a token, which viewers do not get.
    assert.equal(await about.getByText('Access').count(), 0);
    await guest.page.goto('/dashboard/audit');
    await guest.page.getByText('For admins').waitFor();
    await guest.page.goto(`/dashboard/sandboxes/${sandboxId}/terminal`);
    await guest.page.getByText('Not for viewers').waitFor();

    await page.reload();
    // Arrow keys pass over roles without granting them: a grant is confirmed first, and then done.
    await page.getByRole('button', { name: 'Role of Grace: viewer' }).click();
    const question = page.getByRole('dialog', { name: 'Role of Grace' });
    await question.getByRole('radio', { name: 'viewer' }).focus();
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowUp']) await page.keyboard.press(key);
    assert.deepEqual(await seriousFindings(page), []);
    await question.getByRole('button', { name: 'Make Grace developer' }).click();
    await page.getByText('Changed').waitFor();
    await guest.page.reload();
    await guest.page.getByText('connected', { exact: true }).waitFor();
    await guest.page.goto('/dashboard/account');
    await guest.page.getByRole('button', { name: 'Sign out' }).click();
    await guest.page.getByLabel('E-mail').fill('grace@example.com');
    await guest.page.getByLabel('Password').fill('wrong horse battery');
    await guest.page.getByRole('button', { name: 'Sign in' }).click();
    await guest.page.getByRole('alert').getByText('That does not sign in').waitFor();
    await guest.page.getByLabel('Password').fill('correct horse battery');
    await guest.page.getByRole('button', { name: 'Sign in' }).click();
    await guest.page.getByText('Grace · live').waitFor();
    assert.deepEqual(
      guest.complaints.filter(text => !text.includes('401')),
      [],
    );
    await guest.context.close();
  });

  test('a session that has proven nothing for long is asked who it is, and goes on', async () => {
    // The platform says so after ten minutes, for which no test waits; the proof itself is real.
    let isRefused = false;
    await page.route('**/invitations', route => {
      if (route.request().method() !== 'POST' || isRefused) return route.fallback();
      isRefused = true;
      return route.fulfill({
        status: 403,
        json: { code: 403, message: 'a proof is needed', error_code: 'proof_needed' },
      });
    });
    await show('/members', 'Members');
    await page.getByRole('button', { name: 'Invite' }).click();
    await page.getByRole('button', { name: 'Make the link' }).click();
    const asked = page.getByRole('dialog', { name: 'Is it you?' });
    await asked.getByLabel('A new sign-in link').fill('not-a-link');
    await asked.getByRole('button', { name: 'Go on' }).click();
    await asked.getByRole('alert').getByText('That does not sign in').waitFor();
    const link = await page.evaluate(async () => {
      const response = await fetch('/admin/sign-in-links', { method: 'POST' });
      return ((await response.json()) as { path: string }).path;
    });
    await asked.getByLabel('A new sign-in link').fill(link);
    await asked.getByRole('button', { name: 'Go on' }).click();
    await page.getByText('It makes one member').waitFor();
    await page.getByRole('button', { name: 'I have kept it' }).click();
    await page.unroute('**/invitations');
    window.complaints.splice(0);
  });

  test('a page of another origin can do nothing with the session, and signing out ends it', async () => {
    const cookies = await window.context.cookies();
    const session = cookies.find(({ name }) => name === '__Host-atoll');
    assert.deepEqual(
      { httpOnly: session?.httpOnly, secure: session?.secure, sameSite: session?.sameSite },
      { httpOnly: true, secure: true, sameSite: 'Lax' },
    );
    const status = async (headers: Record<string, string>) =>
      (
        await fetch(`${platform.ready.url}/session`, {
          headers: { cookie: `__Host-atoll=${session?.value}`, ...headers },
        })
      ).status;
    assert.equal(await status({ 'sec-fetch-site': 'same-site' }), 401);
    assert.equal(await status({ 'sec-fetch-site': 'same-origin' }), 200);
    assert.equal(await status({ 'e2b-sandbox-id': sandboxId, 'e2b-sandbox-port': '49983' }), 400);
    await page.goto('/dashboard/account');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to Atoll' }).waitFor();
    assert.equal(await status({ 'sec-fetch-site': 'same-origin' }), 401);
  });
});
