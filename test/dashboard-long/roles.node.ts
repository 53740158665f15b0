import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { noBrowser, seriousFindings } from '../dashboard/support/browser.ts';
import type { Window } from '../dashboard/support/browser.ts';
import { joinAs } from '../dashboard/support/people.ts';
import { startSignedIn } from '../dashboard/support/signed-in.ts';
import type { SignedIn } from '../dashboard/support/signed-in.ts';

type Role = 'viewer' | 'developer' | 'admin' | 'operator';
const order: Role[] = ['viewer', 'developer', 'admin', 'operator'];

/** Actions on each page, and the least role that may do them; `{sandbox}`, `{template}` and `{volume}` exist. */
const actions: { path: string; heading: string; buttons: Record<string, Role> }[] = [
  { path: '/sandboxes', heading: 'Sandboxes', buttons: { 'New sandbox': 'developer' } },
  {
    path: '/sandboxes/{sandbox}',
    heading: 'base',
    buttons: {
      '+15 min': 'developer',
      Pause: 'developer',
      Fork: 'developer',
      Snapshot: 'developer',
      Kill: 'developer',
      'Start from it': 'developer',
    },
  },
  { path: '/sandboxes/{sandbox}/network', heading: 'base', buttons: { Save: 'developer', Ask: 'viewer' } },
  { path: '/templates', heading: 'Templates', buttons: { 'Build from a Dockerfile': 'developer' } },
  {
    path: '/templates/{template}',
    heading: 'base',
    buttons: { 'Build again': 'developer', 'New sandbox': 'developer', Delete: 'developer' },
  },
  { path: '/snapshots', heading: 'Snapshots', buttons: { 'Delete this snapshot': 'developer' } },
  { path: '/volumes', heading: 'Volumes', buttons: { 'New volume': 'developer', 'Delete shared': 'developer' } },
  { path: '/secrets', heading: 'Secrets', buttons: { 'New secret': 'developer', 'Delete token': 'developer' } },
  { path: '/keys', heading: 'API keys', buttons: { 'New key': 'admin' } },
  { path: '/members', heading: 'Members', buttons: { Invite: 'admin' } },
  {
    path: '/webhooks',
    heading: 'Webhooks',
    buttons: { 'New webhook': 'admin', 'Switch on': 'admin', 'Delete hook': 'admin' },
  },
];
/** Pages whose content nobody below a role sees. */
const walled: { path: string; heading: string; least: Role }[] = [
  { path: '/keys', heading: 'API keys', least: 'admin' },
  { path: '/audit', heading: 'Audit', least: 'admin' },
  { path: '/sandboxes/{sandbox}/terminal', heading: 'base', least: 'developer' },
  { path: '/sandboxes/{sandbox}/files', heading: 'base', least: 'developer' },
  { path: '/volumes/{volume}', heading: 'Volume', least: 'developer' },
  { path: '/operator', heading: 'Overview', least: 'operator' },
  { path: '/operator/teams', heading: 'Teams and users', least: 'operator' },
  { path: '/operator/settings', heading: 'Settings', least: 'operator' },
];

describe('what each role sees and may do in the browser', { skip: noBrowser ?? false }, () => {
  let signedIn: SignedIn;
  const ids: Record<string, string> = {};
  const windows = {} as Record<Role, Window>;

  const ask = async (method: string, path: string, body: unknown) => {
    const response = await signedIn.platform.api(method, path, body);
    assert.ok(response.ok, `${method} ${path}: ${response.status}`);
    return (await response.json()) as Record<string, string>;
  };
  const show = async (page: Page, path: string, name: string | RegExp) => {
    await page.goto(`/dashboard${path.replace(/\{(\w+)\}/, (_, kind: string) => ids[kind] ?? '')}`);
    await page.getByRole('heading', { level: 1, name }).waitFor();
    await page.getByLabel('Loading').first().waitFor({ state: 'detached' });
  };
  const atLeast = (role: Role, least: Role) => order.indexOf(role) >= order.indexOf(least);

  before(async () => {
    signedIn = await startSignedIn();
    const sandbox = await ask('POST', '/v2/sandboxes', { templateID: 'base', timeout: 900, secure: true });
    ids['sandbox'] = sandbox['sandboxID'] ?? '';
    ids['template'] = sandbox['templateID'] ?? '';
    ids['volume'] = (await ask('POST', '/volumes', { name: 'shared' }))['volumeID'] ?? '';
    await ask('POST', '/secrets', { name: 'token', value: 'a value' });
    await ask('POST', `/sandboxes/${ids['sandbox']}/snapshots`, {});
    const hook = {
      name: 'hook',
      url: 'https://hooks.example.com/',
      events: ['sandbox.lifecycle.created'],
      enabled: false,
    };
    await ask('POST', '/events/webhooks', hook);
    const host = signedIn.window;
    windows.operator = host;
    for (const role of ['viewer', 'developer', 'admin'] as const)
      windows[role] = await joinAs({ ...signedIn, host }, { name: `A ${role}`, role });
  });
  after(() => signedIn?.[Symbol.asyncDispose]());

  for (const role of order) {
    test(`${role}: what the role forbids is disabled and says why, all else can be done`, async () => {
      const { page, complaints } = windows[role];
      complaints.splice(0);
      for (const { path, heading, buttons } of actions) {
        await show(page, path, heading);
        for (const [name, least] of Object.entries(buttons)) {
          const main = page.getByRole('main');
          const button = main
            .getByRole('button', { name, exact: true })
            .or(main.getByRole('link', { name, exact: true }));
          await button.first().waitFor();
          const what = `${role} ${path} ${name}`;
          assert.equal(await button.first().isEnabled(), atLeast(role, least), what);
          if (atLeast(role, least)) continue;
          assert.equal(await button.first().getAttribute('title'), reasonOf(name, least), what);
        }
        assert.equal(await page.getByRole('alert').count(), 0, `${role} ${path}`);
        assert.deepEqual(await seriousFindings(page), [], `${role} ${path}`);
      }
      assert.deepEqual(complaints, []);
    });

    test(`${role}: pages that the role must not see are empty of what they hold`, async () => {
      const { page } = windows[role];
      for (const { path, heading, least } of walled) {
        await show(page, path, path.startsWith('/volumes') ? /Volume|shared/ : heading);
        const refused = page.getByRole('main').getByText(/Not for viewers|For admins|takes the role|operator/i);
        if (atLeast(role, least)) continue;
        await refused.or(page.getByRole('alert')).first().waitFor();
        assert.equal(await page.getByRole('main').getByRole('table').count(), 0, `${role} ${path}`);
      }
      const rail = page.getByRole('navigation', { name: 'Pages' });
      assert.equal(await rail.getByRole('link', { name: 'Doctor' }).count(), role === 'operator' ? 1 : 0);
    });
  }
});

/** What a button says to a user whose role is missing. */
const reasonOf = (name: string, least: Role) =>
  name === 'Invite' ? 'Admins of the team invite' : `It takes the role ${least} in the team`;
