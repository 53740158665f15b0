import { expect, spyOn, test } from 'bun:test';
import { routes } from '../../../src/api/routes.ts';
import { createSignInLink } from '../../../src/api/session/rules/links.ts';
import { createListedKey, createMembersKey } from '../../../src/api/credential/rules/api-keys.ts';
import { digestOf } from '../../../src/api/credential/rules/credential.ts';
import { listApiKeys } from '../../../src/api/credential/store/api-key.ts';
import { createInvitation, invitationsOf, joinTeam } from '../../../src/api/team/rules/invitations.ts';
import { endMembership } from '../../../src/api/team/rules/members.ts';
import { addMember } from '../../../src/api/team/rules/provision-user.ts';
import { lockTeam } from '../../../src/api/team/store/lock.ts';
import { authorizationRows } from '../authorization-rows.ts';
import { Scene } from '../authorization-scene.ts';
import { onEachDatabase } from '../databases.ts';
import { Platform, adminToken, call } from '../platform.ts';
import { beginSession } from '../session-callers.ts';

const page = { 'sec-fetch-site': 'same-origin', host: 'localhost:3000' };
const password = 'correct horse battery';
const cookieOf = (headers: Headers) => /^(__Host-atoll=[0-9a-f]{64});/.exec(headers.get('set-cookie') ?? '')?.[1] ?? '';

const askOf =
  (platform: Platform) =>
  (method: string, path: string, headers: Record<string, string> = {}, body?: unknown) =>
    call(platform.socketPath, method, path, body, { ...page, ...headers });

/** A platform whose operator has an account. */
async function withOperator(platform: Platform) {
  const ask = askOf(platform);
  const code = (await createSignInLink(platform.api.parts, null)).path.split('#')[1];
  const link = cookieOf((await ask('POST', '/session', {}, { code })).headers);
  const made = await ask(
    'POST',
    '/session/account',
    { cookie: link },
    { name: 'Ada', email: 'ada@example.com', password },
  );
  expect(made).toMatchObject({ status: 201, body: { operator: true, user: { name: 'Ada', hasPassword: true } } });
  return { ask, link, cookie: cookieOf(made.headers) };
}

onEachDatabase(database => {
  test('the operator’s link makes the first account, and its password signs in from then on', async () => {
    await using platform = await Platform.start({ database });
    const { ask, link, cookie } = await withOperator(platform);
    expect((await ask('GET', '/session', { cookie: link })).status).toBe(401);
    expect((await ask('GET', '/nodes', { cookie })).status).toBe(200);
    expect(
      (await ask('POST', '/session/account', { cookie }, { name: 'B', email: 'b@example.com', password })).status,
    ).toBe(409);

    const byPassword = await ask('POST', '/session', {}, { email: 'ada@example.com', password });
    expect(byPassword).toMatchObject({ status: 201, body: { operator: true } });
    const renewed = await ask('PUT', '/session/password', { cookie }, { password: `${password} staple` });
    expect(renewed.status).toBe(201);
    for (const ended of [cookie, cookieOf(byPassword.headers)])
      expect((await ask('GET', '/session', { cookie: ended })).status).toBe(401);
    expect((await ask('GET', '/nodes', { cookie: cookieOf(renewed.headers) })).status).toBe(200);
    expect((await ask('POST', '/session', {}, { email: 'ada@example.com', password })).status).toBe(401);
    expect(
      (await ask('PUT', '/session/password', { cookie: cookieOf(renewed.headers) }, { password: 'short' })).status,
    ).toBe(400);
  });

  test('who is invited makes an account and is a member with that role; the link is good once', async () => {
    await using platform = await Platform.start({ database });
    const { ask, cookie } = await withOperator(platform);
    const team = { cookie, 'x-team-id': platform.team.teamId };
    const invite = async (role: string) => {
      const made = (await ask('POST', '/invitations', team, { role, note: 'for Grace' })).body as { path: string };
      return made.path.split('#')[1];
    };
    const invitation = await invite('viewer');
    expect(await ask('GET', '/invitations', team)).toMatchObject({ body: [{ role: 'viewer', note: 'for Grace' }] });
    const account = { invitation, name: 'Grace', email: 'grace@example.com', password };
    const joined = await ask('POST', '/session/invited', {}, account);
    expect(joined).toMatchObject({ status: 201, body: { operator: false, teams: [{ role: 'viewer' }] } });
    {
      using hashing = spyOn(platform.api.parts.passwords, 'hash');
      expect((await ask('POST', '/session/invited', {}, { ...account, email: 'g@example.com' })).status).toBe(401);
      expect(hashing).not.toHaveBeenCalled();
    }

    const viewer = { cookie: cookieOf(joined.headers), 'x-team-id': platform.team.teamId };
    const { sandboxID } = await platform.createSandbox({ secure: true });
    const seen = await ask('GET', `/sandboxes/${sandboxID}`, viewer);
    expect(seen.status).toBe(200);
    expect(seen.body).not.toHaveProperty('envdAccessToken');
    expect(await ask('DELETE', `/sandboxes/${sandboxID}`, viewer)).toMatchObject({
      status: 403,
      body: { message: 'This takes the role "developer" in the team; yours is "viewer"' },
    });
    expect(await ask('GET', '/teams', viewer)).toMatchObject({ status: 200, body: [] });

    const members = (await ask('GET', '/members', viewer)).body as { userID: string }[];
    const userID = members[0]?.userID ?? '';
    expect((await ask('PATCH', `/members/${userID}`, team, { role: 'admin' })).status).toBe(204);
    expect((await ask('DELETE', `/sandboxes/${sandboxID}`, viewer)).status).toBe(204);
    for (const change of [
      () => ask('PATCH', `/members/${userID}`, team, { role: 'developer' }),
      () => ask('DELETE', `/members/${userID}`, team),
    ])
      expect(await change()).toMatchObject({ status: 409, body: { message: expect.stringContaining('only admin') } });

    // A person with an account joins with it.
    const { user } = await platform.user();
    const other = { cookie: (await beginSession(platform, user.userId)).cookie };
    const second = await invite('developer');
    expect(await ask('POST', '/session/teams', other, { invitation: second })).toMatchObject({
      status: 201,
      body: { teams: [{ role: 'developer' }] },
    });
    expect((await ask('POST', '/session/teams', other, { invitation: second })).status).toBe(401);
    expect((await ask('POST', '/session/teams', other, { invitation: await invite('admin') })).status).toBe(409);
    expect((await ask('DELETE', `/members/${user.userId}`, team)).status).toBe(204);
    expect((await ask('GET', '/v2/sandboxes', { ...other, 'x-team-id': platform.team.teamId })).status).toBe(401);
  });

  test('a session that ends while its account is made makes none', async () => {
    await using platform = await Platform.start({ database });
    const ask = askOf(platform);
    const { passwords, db, credentials } = platform.api.parts;
    const code = (await createSignInLink(platform.api.parts, null)).path.split('#')[1];
    const cookie = cookieOf((await ask('POST', '/session', {}, { code })).headers);
    const { hash } = passwords;
    using hashing = spyOn(passwords, 'hash').mockImplementation(async text => {
      await db.deleteFrom('sessions').execute();
      credentials.clear();
      return hash(text);
    });
    const account = { name: 'Ada', email: 'ada@example.com', password };
    const made = await ask('POST', '/session/account', { cookie }, account);
    expect(hashing).toHaveBeenCalledTimes(1);
    expect(made).toMatchObject({ status: 401 });
    expect(await db.selectFrom('users').select('email').where('email', '=', 'ada@example.com').execute()).toEqual([]);
  });

  test('whoever leaves a team, or may less in it, has no key and no invitation left to come back by', async () => {
    await using platform = await Platform.start({ database });
    const { ask, cookie } = await withOperator(platform);
    const { teamId } = platform.team;
    const team = { cookie, 'x-team-id': teamId };
    const admin = { 'x-admin-token': adminToken };
    await addMember(platform.api.parts, platform.team, (await platform.user()).user, 'admin'); // who stays
    const leaving = {
      removed: (userId: string) => ask('DELETE', `/members/${userId}`, team),
      'removed by the operator': (userId: string) => ask('DELETE', `/admin/teams/${teamId}/members/${userId}`, admin),
      'made a viewer': (userId: string) => ask('PATCH', `/members/${userId}`, team, { role: 'viewer' }),
    };
    const account = { name: 'Eve', password };
    for (const [way, leave] of Object.entries(leaving)) {
      const { user, token } = await platform.user();
      await addMember(platform.api.parts, platform.team, user, 'admin');
      const bearer = { authorization: `Bearer ${token}` };
      const [listed] = (await ask('GET', '/teams', bearer)).body as { apiKey: string }[];
      const key = { 'x-api-key': listed?.apiKey ?? '' };
      expect((await ask('GET', '/v2/sandboxes', key)).status).toBe(200);
      const made = await ask('POST', '/invitations', { ...bearer, 'x-team-id': teamId }, { role: 'admin' });
      const invitation = (made.body as { path: string }).path.split('#')[1];
      expect((await leave(user.userId)).status).toBe(204);
      expect({ way, status: (await ask('GET', '/v2/sandboxes', key)).status }).toEqual({ way, status: 401 });
      const back = await ask(
        'POST',
        '/session/invited',
        {},
        { ...account, email: `${way.length}@example.com`, invitation },
      );
      expect({ way, status: back.status }).toEqual({ way, status: 401 });
    }
    // A person whose role stays the same keeps their keys, and the team's own keys stay too.
    const { user, token } = await platform.user();
    await addMember(platform.api.parts, platform.team, user, 'admin');
    const [listed] = (await ask('GET', '/teams', { authorization: `Bearer ${token}` })).body as { apiKey: string }[];
    expect((await ask('PATCH', `/members/${user.userId}`, team, { role: 'developer' })).status).toBe(204);
    expect((await ask('GET', '/v2/sandboxes', { 'x-api-key': listed?.apiKey ?? '' })).status).toBe(200);
    expect((await platform.call('GET', '/v2/sandboxes')).status).toBe(200);
  });

  test('who is removed while he makes a key or an invitation leaves none behind', async () => {
    await using platform = await Platform.start({ database });
    const { parts } = platform.api;
    const { team } = platform;
    const { user, token } = await platform.user(team);
    const held = { kind: 'accessToken', digest: digestOf('accessToken', token) ?? '' } as const;
    const answers: Promise<PromiseSettledResult<unknown>[]>[] = [];
    await parts.db.transaction().execute(async db => {
      expect(await endMembership(db, team.teamId, user.userId)).toBe(true);
      answers.push(
        Promise.allSettled([
          createListedKey(parts, team, user, held),
          createMembersKey(parts, team, 'late', user.userId),
          createInvitation(parts, team, 'admin', '', user.userId),
        ]),
      );
      // A window: nothing may be made in it.
      await Bun.sleep(200);
    });
    const outcomes = (await answers[0])?.map(outcome => outcome.status === 'rejected' && outcome.reason);
    expect(outcomes).toMatchObject([{ code: 'forbidden' }, { code: 'forbidden' }, { code: 'forbidden' }]);
    expect((await listApiKeys(parts.db, team.teamId)).map(({ name }) => name)).toEqual(['first']);
    expect(await invitationsOf(parts, team)).toEqual([]);
  });

  test('a viewer sees no credentials in header rules and in addresses of webhooks', async () => {
    await using platform = await Platform.start({ database, features: { headerRules: true } });
    const { team } = platform;
    const by = async (role: 'viewer' | 'developer') => {
      const { user, token } = await platform.user();
      await addMember(platform.api.parts, team, user, role);
      const headers = { authorization: `Bearer ${token}`, 'x-team-id': team.teamId };
      return async (path: string) => (await call(platform.socketPath, 'GET', path, undefined, headers)).body;
    };
    const [viewer, developer] = [await by('viewer'), await by('developer')];
    await platform.call('POST', '/secrets', { name: 'key', value: 'v' });
    const headers = { Authorization: 'Bearer x', 'X-Key': 'k ${e2b.secrets.key}', 'X-Only': '${e2b.secrets.key}' };
    const { sandboxID } = await platform.createSandbox({
      network: { rules: { 'a.example': [{ transform: { headers } }] } },
    });
    const shown = (headers: object) => ({ network: { rules: { 'a.example': [{ transform: { headers } }] } } });
    expect(await developer(`/sandboxes/${sandboxID}`)).toMatchObject({
      ...shown(headers),
      envdAccessToken: expect.any(String),
    });
    const seen = await viewer(`/sandboxes/${sandboxID}`);
    expect(seen).toMatchObject(
      shown({ Authorization: '***', 'X-Key': '***${e2b.secrets.key}', 'X-Only': '${e2b.secrets.key}' }),
    );
    expect(seen).not.toHaveProperty('envdAccessToken');

    const url = 'https://hooks.example.com:8443/services/T0/B0?token=t';
    const hook = { name: 'h', url, events: ['sandbox.lifecycle.created'] };
    const { id } = (await platform.call('POST', '/events/webhooks', hook)).body as { id: string };
    for (const path of ['/events/webhooks', `/events/webhooks/${id}`]) {
      expect(JSON.stringify(await developer(path))).toContain(url);
      expect(JSON.stringify(await viewer(path))).toContain('"https://hooks.example.com:8443/***"');
    }
  });

  test('a team has a hundred invitations at most, which is a limit like others', async () => {
    await using platform = await Platform.start({ database });
    const { parts } = platform.api;
    for (let made = 0; made < 100; made++) await createInvitation(parts, platform.team, 'viewer', '');
    await expect(createInvitation(parts, platform.team, 'viewer', '')).rejects.toMatchObject({
      code: 'rate_limited',
      message: 'The team has 100 invitations, which is the most: remove some that nobody takes',
    });
  });

  test('who joins while an admin is removed waits for it, and neither is given up', async () => {
    await using platform = await Platform.start({ database });
    const { parts } = platform.api;
    const { team } = platform;
    const { user: leaving } = await platform.user(team);
    const { user: joining } = await platform.user();
    const { path } = await createInvitation(parts, team, 'viewer', '');
    const joined: Promise<unknown>[] = [];
    await parts.db.transaction().execute(async db => {
      await lockTeam(db, team.teamId);
      joined.push(joinTeam(parts, joining, path.split('#')[1] ?? '').catch((error: unknown) => error));
      // A window: who joins has come as far as he can.
      await Bun.sleep(200);
      await endMembership(db, team.teamId, leaving.userId);
    });
    expect(await joined[0]).toMatchObject({ code: 'unauthenticated' });
  });

  test('a former operator has lost the rights at the next request', async () => {
    await using platform = await Platform.start({ database });
    const { ask, cookie } = await withOperator(platform);
    const users = (await ask('GET', '/admin/users', { cookie })).body as { userID: string; operator: boolean }[];
    expect(users.map(({ operator }) => operator)).toEqual([true]);
    const change = [`/admin/users/${users[0]?.userID}`, { 'x-admin-token': adminToken }, { operator: false }] as const;
    expect((await ask('PATCH', ...change)).status).toBe(204);
    expect((await ask('GET', '/nodes', { cookie })).status).toBe(401);
    expect(await ask('GET', '/session', { cookie })).toMatchObject({ status: 200, body: { operator: false } });
  });
});

test('a wrong password and an unknown account are answered alike, and limited alike', async () => {
  await using platform = await Platform.start();
  const { ask } = await withOperator(platform);
  // At once, and from many addresses: the limit belongs to the account, and is reached however slow the checks are.
  const answers = async (email: string, from: number) => {
    const all = await Promise.all(
      Array.from({ length: 16 }, (_, i) =>
        ask('POST', '/session', { 'x-forwarded-for': `192.0.2.${from + i}` }, { email, password: 'wrong' }),
      ),
    );
    return new Map(all.map(({ status, body }) => [status, JSON.stringify(body)]));
  };
  const [known, unknown] = [await answers('ada@example.com', 1), await answers('nobody@example.com', 101)];
  expect([...known.keys()].toSorted()).toEqual([401, 429]);
  expect(known).toEqual(unknown);
});

test('a team reads its limits with what is taken, and its admins who changed what of it alone', async () => {
  await using platform = await Platform.start({ limits: { concurrentSandboxes: 7 } });
  await platform.createSandbox();
  expect(await platform.call('GET', '/limits')).toMatchObject({
    body: { limits: { concurrentSandboxes: 7, volumes: 100 }, taken: { concurrentSandboxes: 1, concurrentBuilds: 0 } },
  });
  const other = await platform.otherTeam();
  await platform.call('POST', '/v2/sandboxes', { templateID: 'base' }, { 'x-api-key': other.key });
  const admin = { 'x-admin-token': adminToken, 'x-team-id': platform.team.teamId };
  const audit = await askOf(platform)('GET', '/audit', admin);
  const teams = (audit.body as { teamID: string }[]).map(({ teamID }) => teamID);
  expect(new Set(teams)).toEqual(new Set([platform.team.teamId]));
});

test('dangerous operations take a session with a recent proof of identity', async () => {
  await using scene = await Scene.open();
  const proof = routes.filter(route => route.proof);
  expect(proof.length).toBeGreaterThan(10);
  for (const route of routes) {
    if (route.auth === 'none') continue;
    const request = await authorizationRows[route.operationId]?.request(scene);
    const answers = await Promise.all(
      ['session with team', "operator's session with team"].map(caller =>
        scene.sendUnproven(caller as never, route.method, request?.path ?? '', request?.body),
      ),
    );
    const asked = answers.some(({ body }) => (body as { error_code?: string } | null)?.error_code === 'proof_needed');
    expect({ operation: route.operationId, asked }).toEqual({ operation: route.operationId, asked: route.proof });
    await scene.tidy();
  }
}, 120_000);

test('a session proves itself again by password, token or link of the same account alone', async () => {
  await using platform = await Platform.start();
  const { ask, cookie } = await withOperator(platform);
  const { user, token } = await platform.user();
  await addMember(platform.api.parts, platform.team, user, 'admin');
  const makeOld = async () => {
    await platform.store.db.updateTable('sessions').set({ proven_at_us: 0 }).execute();
    platform.api.parts.credentials.clear();
  };
  const invite = () => ask('POST', '/invitations', { cookie, 'x-team-id': platform.team.teamId }, { role: 'viewer' });
  const codeOf = async (userId: string | null) =>
    (await createSignInLink(platform.api.parts, userId)).path.split('#')[1];
  const own = (await ask('GET', '/session', { cookie })).body as { user: { id: string } };

  for (const good of [{ password }, { code: await codeOf(own.user.id) }]) {
    await makeOld();
    expect(await invite()).toMatchObject({ status: 403, body: { error_code: 'proof_needed' } });
    expect((await ask('PUT', '/session/proof', { cookie }, good)).status).toBe(204);
    expect((await invite()).status).toBe(201);
  }
  await makeOld();
  for (const bad of [{ password: 'wrong' }, { accessToken: token }, { code: await codeOf(user.userId) }, { code: 'x' }])
    expect((await ask('PUT', '/session/proof', { cookie }, bad)).status).toBe(401);
  expect((await invite()).status).toBe(403);
});
