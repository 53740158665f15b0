import { expect, test } from 'bun:test';
import { inTransaction } from '../../../src/api/database/db.ts';
import { createApiKey } from '../../../src/api/credential/rules/api-keys.ts';
import { insertApiKey, listApiKeys } from '../../../src/api/credential/store/api-key.ts';
import { readNode } from '../../../src/api/operator/rules/nodes.ts';
import { setNodeStatus } from '../../../src/api/placement/node-status.ts';
import { singleNode } from '../../../src/api/placement/nodes.ts';
import { changeRole } from '../../../src/api/team/rules/members.ts';
import { deleteMember } from '../../../src/api/team/store/member.ts';
import type { NodeProtocol } from '../../../src/protocol/node.ts';
import { onEachDatabase } from '../databases.ts';
import { endlessBuilder } from '../fake-builder.ts';
import { Platform, adminToken, call } from '../platform.ts';

type Key = { id: string; name: string; key: string; mask: Record<string, unknown>; lastUsed: string | null };

onEachDatabase(database => {
  test('a user lists his teams with a key that works, and only the newest of those keys stay', async () => {
    await using platform = await Platform.start({ database });
    const other = await platform.otherTeam();
    await platform.otherTeam('foreign');
    const { token } = await platform.user(platform.team, other.team);
    const headers = { authorization: `Bearer ${token}` };
    const teams = async () =>
      (await call(platform.socketPath, 'GET', '/teams', undefined, headers)).body as Array<{
        teamID: string;
        apiKey: string;
      }>;
    const listed = await teams();
    expect(listed).toMatchObject([
      { teamID: platform.team.teamId, name: 'Default', isDefault: true },
      { teamID: other.team.teamId, name: 'other', isDefault: false },
    ]);
    for (const { apiKey } of listed) {
      expect((await platform.call('GET', '/sandboxes', undefined, { 'x-api-key': apiKey })).status).toBe(200);
    }
    for (let i = 0; i < 24; i++) await teams();
    const last = await teams();
    // 20 of these, and the one that the team was created with.
    expect(await listApiKeys(platform.store.db, platform.team.teamId)).toHaveLength(21);
    expect((await platform.call('GET', '/sandboxes', undefined, { 'x-api-key': last[0]?.apiKey ?? '' })).status).toBe(
      200,
    );
    expect((await platform.call('GET', '/sandboxes', undefined, { 'x-api-key': listed[0]?.apiKey ?? '' })).status).toBe(
      401,
    );
    expect((await platform.call('GET', '/sandboxes')).status).toBe(200);
  });

  test('a team has a thousand keys at most, and those of the list beside them', async () => {
    await using platform = await Platform.start({ database });
    const [first] = await listApiKeys(platform.store.db, platform.team.teamId);
    if (!first) throw new Error('the team has no key');
    await inTransaction(platform.store.db, async db => {
      for (let i = 1; i < 999; i++) await insertApiKey(db, { ...first, keyId: crypto.randomUUID(), digest: `${i}` });
    });
    const make = () => createApiKey(platform.api.parts, platform.team, 'one more');
    await make();
    await expect(make()).rejects.toMatchObject({
      code: 'rate_limited',
      message: expect.stringContaining('1000 API keys'),
    });
    const { token } = await platform.user(platform.team);
    const headers = { authorization: `Bearer ${token}` };
    expect((await call(platform.socketPath, 'GET', '/teams', undefined, headers)).status).toBe(200);
    const all = await listApiKeys(platform.store.db, platform.team.teamId);
    expect(all).toHaveLength(1001);
  });

  test('a key of the list may what the member may, whatever he becomes, and keeps its name', async () => {
    await using platform = await Platform.start({ database });
    const { parts } = platform.api;
    const { teamId } = platform.team;
    await platform.user(platform.team); // an admin who stays
    const { user, token } = await platform.user(platform.team);
    const headers = { authorization: `Bearer ${token}` };
    const [listed] = (await call(platform.socketPath, 'GET', '/teams', undefined, headers)).body as {
      apiKey: string;
    }[];
    const key = { 'x-api-key': listed?.apiKey ?? '' };
    const statuses = async () => [
      (await call(platform.socketPath, 'GET', '/v2/sandboxes', undefined, key)).status,
      (await call(platform.socketPath, 'DELETE', `/events/webhooks/${crypto.randomUUID()}`, undefined, key)).status,
    ];
    expect(await statuses()).toEqual([200, 404]);
    await changeRole(parts, platform.team, user.userId, 'developer');
    expect(await statuses()).toEqual([200, 403]);
    const { keyId = '' } =
      (await listApiKeys(platform.store.db, teamId)).find(one => one.createdBy === user.userId) ?? {};
    const operator = { 'x-admin-token': adminToken, 'x-team-id': teamId };
    const renamed = await call(platform.socketPath, 'PATCH', `/api-keys/${keyId}`, { name: 'ci' }, operator);
    expect(renamed).toMatchObject({ status: 409, body: { message: expect.stringContaining('GET /teams') } });
    // The membership decides, not that whoever ends it finds every key.
    await deleteMember(platform.store.db, teamId, user.userId);
    parts.credentials.clear();
    expect(await statuses()).toEqual([401, 401]);
  });

  test('listing teams and what else a user asks for without a team is limited', async () => {
    await using platform = await Platform.start({ database, limits: { requestsPerSecond: 10 } });
    const ask = async (token: string, path: string) =>
      call(platform.socketPath, 'GET', path, undefined, { authorization: `Bearer ${token}` });
    const { token } = await platform.user(platform.team);
    const answers = await Promise.all(Array.from({ length: 80 }, () => ask(token, '/teams')));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(10);
    expect(refused[0]?.headers.get('retry-after')).toBe('1');
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 429]));
    const { token: other } = await platform.user(platform.team);
    const deletions = await Promise.all(
      Array.from({ length: 200 }, () =>
        call(platform.socketPath, 'DELETE', `/access-tokens/${crypto.randomUUID()}`, undefined, {
          authorization: `Bearer ${other}`,
        }),
      ),
    );
    expect(new Set(deletions.map(({ status }) => status))).toEqual(new Set([404, 429]));
  });

  test('keys are made, listed masked, renamed and revoked', async () => {
    await using platform = await Platform.start({ database });
    const { user, token } = await platform.user(platform.team);
    const headers = { authorization: `Bearer ${token}`, 'x-team-id': platform.team.teamId };
    const send = (method: string, path: string, body?: unknown) =>
      call(platform.socketPath, method, path, body, headers);

    const created = await send('POST', '/api-keys', { name: 'ci' });
    expect(created.status).toBe(201);
    const key = created.body as Key;
    expect(key).toMatchObject({ name: 'ci', lastUsed: null, createdBy: { id: user.userId, email: user.email } });
    expect(key.key).toMatch(/^e2b_[0-9a-f]{40}$/);
    expect(key.mask).toEqual({
      prefix: 'e2b_',
      valueLength: 40,
      maskedValuePrefix: key.key.slice(4, 6),
      maskedValueSuffix: key.key.slice(-4),
    });
    expect((await platform.call('GET', '/sandboxes', undefined, { 'x-api-key': key.key })).status).toBe(200);

    await platform.api.parts.credentials.flushUses();
    const listed = (await send('GET', '/api-keys')).body as Key[];
    expect(listed.map(({ name }) => name)).toEqual(['first', 'ci']);
    expect(JSON.stringify(listed)).not.toContain(key.key.slice(6, -4));
    expect(Date.parse(listed[1]?.lastUsed ?? '')).toBeGreaterThan(Date.now() - 60_000);

    expect((await send('PATCH', `/api-keys/${key.id}`, { name: 'renamed' })).status).toBe(200);
    expect(((await send('GET', '/api-keys')).body as Key[])[1]?.name).toBe('renamed');
    expect((await platform.call('GET', '/sandboxes', undefined, { 'x-api-key': key.key })).status).toBe(200);
    expect((await send('DELETE', `/api-keys/${key.id}`)).status).toBe(204);
    expect((await platform.call('GET', '/sandboxes', undefined, { 'x-api-key': key.key })).status).toBe(401);
    expect((await send('DELETE', `/api-keys/${key.id}`)).status).toBe(404);
    expect((await send('PATCH', `/api-keys/${key.id}`, { name: 'x' })).status).toBe(404);
    for (const body of [{}, { name: '' }, { name: 5 }, { name: 'x'.repeat(129) }])
      expect((await send('POST', '/api-keys', body)).status).toBe(400);
    expect((await send('DELETE', '/api-keys/nonsense')).status).toBe(400);
  });

  test('a NUL character in a name or a path is refused by its name', async () => {
    await using platform = await Platform.start({ database });
    const { token } = await platform.user(platform.team);
    const headers = { authorization: `Bearer ${token}`, 'x-team-id': platform.team.teamId };
    for (const [method, path, body, names] of [
      ['POST', '/api-keys', { name: 'a\0' }, 'name'],
      ['POST', '/access-tokens', { name: '\0' }, 'name'],
      ['GET', '/secrets/%00', undefined, 'secretID'],
      ['GET', '/templates/aliases/a%00', undefined, 'alias'],
      ['DELETE', '/members/%00', undefined, 'userID'],
    ] as const) {
      const answer = await call(platform.socketPath, method, path, body, headers);
      expect({ path, ...answer }).toMatchObject({
        status: 400,
        body: { code: 400, message: `${names}: must not hold a NUL character` },
      });
    }
  });

  test('of two who make an account or a team with one name at once, one is told that it is taken', async () => {
    await using platform = await Platform.start({ database });
    const admin = (path: string, body: unknown) =>
      call(platform.socketPath, 'POST', path, body, { 'x-admin-token': adminToken });
    for (let round = 0; round < 5; round++) {
      for (const [path, body, message] of [
        ['/admin/users', { name: 'A', email: `a${round}@example.com` }, `email: "a${round}@example.com" is taken`],
        ['/admin/teams', { name: 'A', slug: `a${round}` }, `slug: "a${round}" is taken`],
      ] as const) {
        const answers = await Promise.all([1, 2, 3, 4].map(() => admin(path, body)));
        expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409]);
        for (const { status, body: refused } of answers) if (status === 409) expect(refused).toMatchObject({ message });
      }
    }
  });

  test('an operator makes and revokes keys of any team, and acts for one', async () => {
    await using platform = await Platform.start({ database });
    const admin = (method: string, path: string, body?: unknown, teamId?: string) =>
      call(platform.socketPath, method, path, body, {
        'x-admin-token': adminToken,
        ...(teamId !== undefined && { 'x-team-id': teamId }),
      });
    const created = await admin('POST', `/admin/teams/${platform.team.teamId}/api-keys`, { name: 'given' });
    expect(created.status).toBe(201);
    const { id, key } = created.body as Key;
    expect((await platform.call('GET', '/sandboxes', undefined, { 'x-api-key': key })).status).toBe(200);
    expect(
      ((await admin('GET', '/api-keys', undefined, platform.team.teamId)).body as Key[]).map(({ name }) => name),
    ).toEqual(['first', 'given']);
    const other = await platform.otherTeam();
    expect((await admin('DELETE', `/admin/teams/${other.team.teamId}/api-keys/${id}`)).status).toBe(404);
    expect((await admin('DELETE', `/admin/teams/${platform.team.teamId}/api-keys/${id}`)).status).toBe(204);
    expect((await platform.call('GET', '/sandboxes', undefined, { 'x-api-key': key })).status).toBe(401);
    for (const teamId of ['x', '00000000-0000-0000-0000-000000000000']) {
      expect((await admin('POST', `/admin/teams/${teamId}/api-keys`, { name: 'x' })).status).toBe(
        teamId === 'x' ? 400 : 404,
      );
    }
    expect((await admin('POST', '/v2/sandboxes', { templateID: 'base' }, platform.team.teamId)).status).toBe(201);
    expect((await admin('GET', '/sandboxes', undefined, 'no-team')).status).toBe(401);
  });

  test('access tokens are made and revoked by their user', async () => {
    await using platform = await Platform.start({ database });
    const { token } = await platform.user(platform.team);
    const { token: foreign } = await platform.user();
    const send = (method: string, path: string, body?: unknown, bearer = token) =>
      call(platform.socketPath, method, path, body, { authorization: `Bearer ${bearer}` });
    const created = await send('POST', '/access-tokens', { name: 'laptop' });
    expect(created.status).toBe(201);
    const made = created.body as { id: string; token: string };
    expect(made.token).toMatch(/^sk_e2b_[0-9a-f]{40}$/);
    expect(created.body).toMatchObject({ name: 'laptop', mask: { prefix: 'sk_e2b_', valueLength: 40 } });
    expect((await send('GET', '/teams', undefined, made.token)).status).toBe(200);
    expect((await send('DELETE', `/access-tokens/${made.id}`, undefined, foreign)).status).toBe(404);
    expect((await send('DELETE', `/access-tokens/${made.id}`)).status).toBe(204);
    expect((await send('GET', '/teams', undefined, made.token)).status).toBe(401);
    expect((await send('DELETE', `/access-tokens/${made.id}`)).status).toBe(404);
    expect((await send('DELETE', '/access-tokens/x')).status).toBe(400);
  });

  test('a member acts for a team of his by an access token, and for no other', async () => {
    await using platform = await Platform.start({ database });
    const other = await platform.otherTeam();
    const { token } = await platform.user(platform.team);
    const send = (teamId: string | null, path = '/sandboxes') =>
      call(platform.socketPath, 'GET', path, undefined, {
        authorization: `bearer ${token}`,
        ...(teamId !== null && { 'x-team-id': teamId }),
      });
    expect((await send(platform.team.teamId)).status).toBe(200);
    expect((await send(other.team.teamId)).status).toBe(401);
    expect((await send('nonsense')).status).toBe(401);
    expect((await send(null)).status).toBe(401);
    // The template routes accept only a token, for the default team.
    expect((await send(null, '/templates')).body).toHaveLength(1);
    await platform.store.db.deleteFrom('team_members').execute();
    platform.api.parts.credentials.clear();
    expect((await send(platform.team.teamId)).status).toBe(401);
  });

  test('an operator counts and ends the sandboxes of a team', async () => {
    await using platform = await Platform.start({ database });
    const other = await platform.otherTeam();
    for (let i = 0; i < 3; i++) await platform.createSandbox();
    await platform.call('POST', '/v2/sandboxes', { templateID: 'base' }, { 'x-api-key': other.key });
    const admin = (method: string, path: string) =>
      call(platform.socketPath, method, path, undefined, { 'x-admin-token': adminToken });
    const counts = async () => (await admin('GET', '/admin/sandboxes/running-counts')).body;
    expect(await counts()).toEqual({ [platform.team.teamId]: 3, [other.team.teamId]: 1 });
    let refusals = 1;
    platform.node.before = async call => {
      if (call === 'kill' && refusals-- > 0) throw new Error('busy');
    };
    expect(await admin('POST', `/admin/teams/${platform.team.teamId}/sandboxes/kill`)).toMatchObject({
      status: 200,
      body: { killedCount: 2, failedCount: 1 },
    });
    expect(await counts()).toEqual({ [other.team.teamId]: 1 });
    expect((await platform.call('GET', '/sandboxes')).body).toEqual([]);
  });

  test('an operator cancels the builds of a team', async () => {
    await using platform = await Platform.start({ database, builder: endlessBuilder() });
    const build = (await platform.call('POST', '/v3/templates', { name: 'mine' })).body as {
      templateID: string;
      buildID: string;
    };
    expect(
      (
        await platform.call('POST', `/v2/templates/${build.templateID}/builds/${build.buildID}`, {
          fromImage: 'debian:12',
        })
      ).status,
    ).toBe(202);
    const other = await platform.otherTeam();
    const admin = (teamId: string) =>
      call(platform.socketPath, 'POST', `/admin/teams/${teamId}/builds/cancel`, undefined, {
        'x-admin-token': adminToken,
      });
    expect((await admin(other.team.teamId)).body).toEqual({ cancelledCount: 0, failedCount: 0 });
    expect((await admin(platform.team.teamId)).body).toEqual({ cancelledCount: 1, failedCount: 0 });
    const status = await platform.call('GET', `/templates/${build.templateID}/builds/${build.buildID}/status`);
    expect(status.body).toMatchObject({ status: 'error', reason: { message: 'Cancelled by the operator' } });
  });

  test('a machine is described, taken out of placement and back in', async () => {
    await using platform = await Platform.start({ database });
    await platform.createSandbox();
    const admin = (method: string, path: string, body?: unknown) =>
      call(platform.socketPath, method, path, body, { 'x-admin-token': adminToken });
    const [listed] = (await admin('GET', '/nodes')).body as Array<Record<string, unknown>>;
    expect(listed).toMatchObject({
      id: 'node-1',
      status: 'ready',
      sandboxCount: 1,
      sandboxStartingCount: 0,
      createSuccesses: 1,
      createFails: 0,
      metrics: { allocatedCPU: 2, cpuCount: 2, allocatedMemoryBytes: 1024 ** 3, memoryTotalBytes: 4 * 1024 ** 3 },
    });
    expect((await admin('GET', '/nodes?clusterID=elsewhere')).body).toEqual([]);
    expect((await admin('POST', '/nodes/node-1', { status: 'draining' })).status).toBe(204);
    expect((await admin('GET', '/nodes/node-1')).body).toMatchObject({ status: 'draining' });
    expect(await platform.call('POST', '/v2/sandboxes', { templateID: 'base' })).toMatchObject({
      status: 503,
      body: { error_code: 'sandbox_no_compatible_node' },
    });
    expect((await platform.call('GET', '/sandboxes')).body).toHaveLength(1);
    expect((await admin('POST', '/nodes/node-1', { status: 'ready' })).status).toBe(204);
    await platform.createSandbox();
    expect((await admin('POST', '/nodes/node-1', { status: 'unhealthy' })).status).toBe(409);
    expect((await admin('POST', '/nodes/node-1', { status: 'gone' })).status).toBe(400);
    expect((await admin('GET', '/nodes/other')).status).toBe(404);
    expect((await admin('POST', '/nodes/other', { status: 'ready' })).status).toBe(404);
  });

  test('a machine is ready since it was back, and taken out since somebody did that', async () => {
    await using platform = await Platform.start({ database });
    const { db } = platform.store;
    const { createCounts } = platform.api.parts;
    const protocol = platform.node as NodeProtocol;
    const nodes = { ...singleNode('node-1', protocol), list: () => [{ nodeId: 'node-1', protocol, sinceUs: 2000 }] };
    const since = async () => {
      const deps = { createCounts, db, nodes, startedAtUs: 1000 };
      return (await readNode(deps, 'node-1')).statusChangedAtUs;
    };
    expect(await since()).toBe(2000);
    await setNodeStatus(db, { nodeId: 'node-1', status: 'draining', changedAtUs: 1500 });
    expect(await since()).toBe(1500);
    await setNodeStatus(db, { nodeId: 'node-1', status: 'ready', changedAtUs: 1600 });
    expect(await since()).toBe(2000);
    await setNodeStatus(db, { nodeId: 'node-1', status: 'ready', changedAtUs: 3000 });
    expect(await since()).toBe(3000);
  });

  test('an operator makes teams, users, members and their first token', async () => {
    await using platform = await Platform.start({ database });
    const admin = (method: string, path: string, body?: unknown) =>
      call(platform.socketPath, method, path, body, { 'x-admin-token': adminToken });
    const team = (
      await admin('POST', '/admin/teams', { name: 'Blue', slug: 'blue', limits: { concurrentSandboxes: 1 } })
    ).body as { teamID: string };
    expect(team).toMatchObject({
      name: 'Blue',
      slug: 'blue',
      limits: { concurrentSandboxes: 1 },
      banned: false,
      blocked: false,
    });
    expect((await admin('POST', '/admin/teams', { name: 'Other', slug: 'blue' })).status).toBe(409);
    for (const slug of ['', 'A', 'a b', 'x'.repeat(65)])
      expect((await admin('POST', '/admin/teams', { name: 'N', slug })).status).toBe(400);
    const user = (await admin('POST', '/admin/users', { name: 'Ann', email: 'ann@example.com' })).body as {
      userID: string;
    };
    expect((await admin('POST', '/admin/users', { name: 'Ann', email: 'ann@example.com' })).status).toBe(409);
    expect((await admin('POST', '/admin/users', { name: 'Ann', email: 'ann' })).status).toBe(400);
    const { token } = (await admin('POST', `/admin/users/${user.userID}/access-tokens`, { name: 'first' })).body as {
      token: string;
    };
    const asAnn = (method: string, path: string, body?: unknown) =>
      call(platform.socketPath, method, path, body, { authorization: `Bearer ${token}`, 'x-team-id': team.teamID });
    expect((await asAnn('GET', '/sandboxes')).status).toBe(401);
    expect((await admin('PUT', `/admin/teams/${team.teamID}/members/${user.userID}`)).status).toBe(204);
    expect((await admin('PUT', `/admin/teams/${team.teamID}/members/${user.userID}`)).status).toBe(409);
    expect((await asAnn('GET', '/teams')).body).toMatchObject([{ teamID: team.teamID, isDefault: true }]);
    expect([
      (await asAnn('POST', '/v2/sandboxes', { templateID: 'base' })).status,
      (await asAnn('POST', '/v2/sandboxes', { templateID: 'base' })).status,
    ]).toEqual([201, 429]);

    const change = async (body: object) => (await admin('PATCH', `/admin/teams/${team.teamID}`, body)).body;
    expect(await change({ limits: {}, name: 'Azure' })).toMatchObject({
      name: 'Azure',
      limits: { concurrentSandboxes: 1 },
    });
    expect(await change({ limits: { memoryMiB: 2048 } })).toMatchObject({
      limits: { concurrentSandboxes: 1, memoryMiB: 2048 },
    });
    expect(await change({ limits: { concurrentSandboxes: null } })).toMatchObject({ limits: { memoryMiB: 2048 } });
    expect(await change({ name: 'Azure' })).not.toMatchObject({ limits: { concurrentSandboxes: 1 } });
    for (const [body, field] of [
      [{ limits: { concurrentSandbox: 2 } }, 'limits.concurrentSandbox'],
      [{ limits: { memoryMiB: 1024, nothing: null } }, 'limits.nothing'],
      [{ limit: { memoryMiB: 1 } }, 'limit'],
      [{ slug: 'red' }, 'slug'],
      [{ teamID: 'x' }, 'teamID'],
    ] as const) {
      const refused = await admin('PATCH', `/admin/teams/${team.teamID}`, body);
      expect([refused.status, (refused.body as { message: string }).message]).toEqual([
        400,
        expect.stringContaining(`${field}: there is no such member`),
      ]);
    }
    await Promise.all([
      change({ limits: { cpuCount: 3 } }),
      change({ limits: { diskMiB: 999 } }),
      change({ limits: { volumes: 7 } }),
    ]);
    expect(await change({ limits: { memoryMiB: null } })).toMatchObject({
      name: 'Azure',
      limits: { cpuCount: 3, diskMiB: 999, volumes: 7 },
    });
    expect(await change({ limits: { cpuCount: null, diskMiB: null, volumes: null } })).toMatchObject({ limits: {} });
    expect((await asAnn('POST', '/v2/sandboxes', { templateID: 'base' })).status).toBe(201);
    expect((await admin('PATCH', `/admin/teams/${team.teamID}`, { banned: true })).status).toBe(200);
    expect((await asAnn('GET', '/sandboxes')).status).toBe(403);
    expect((await admin('PATCH', `/admin/teams/${team.teamID}`, { banned: false })).status).toBe(200);
    expect((await asAnn('GET', '/sandboxes')).status).toBe(200);
    expect((await admin('DELETE', `/admin/teams/${team.teamID}/members/${user.userID}`)).status).toBe(204);
    expect((await asAnn('GET', '/sandboxes')).status).toBe(401);
    expect((await admin('DELETE', `/admin/teams/${team.teamID}/members/${user.userID}`)).status).toBe(404);
    expect(((await admin('GET', '/admin/teams')).body as unknown[]).length).toBe(2);
    expect((await admin('GET', '/admin/users')).body).toMatchObject([
      { userID: user.userID, email: 'ann@example.com' },
    ]);
  });
});
