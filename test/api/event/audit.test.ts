import { expect, spyOn, test } from 'bun:test';
import { reconcileAudit } from '../../../src/api/event/rules/audit.ts';
import { onEachDatabase } from '../databases.ts';
import { Platform, adminToken, call } from '../platform.ts';

type Entry = {
  id: string;
  operation: string;
  target: string;
  actor: { kind: string; id: string | null };
  teamID: string | null;
  status: number;
  address: string;
  before: unknown;
  after: unknown;
};

onEachDatabase(database => {
  const audit = async (platform: Platform, query = '') => {
    const answer = await call(platform.socketPath, 'GET', `/admin/audit?${query}`, undefined, {
      'x-admin-token': adminToken,
    });
    expect(answer.status).toBe(200);
    return { entries: answer.body as Entry[], token: answer.headers.get('x-next-token') };
  };

  test('every change is told with who, from where, before and after; reading and refused requests are not', async () => {
    await using platform = await Platform.start({ database });
    const keyId = (await platform.store.db.selectFrom('api_keys').select('key_id').executeTakeFirstOrThrow()).key_id;
    const { sandboxID } = await platform.createSandbox({ envVars: { SECRET: 'never-in-the-log' } });
    await platform.call('GET', `/sandboxes/${sandboxID}`);
    await platform.call('POST', '/v2/sandboxes', { templateID: 'nothing' });
    await platform.call(
      'POST',
      `/sandboxes/${sandboxID}/timeout`,
      { timeout: 5000 },
      { 'x-forwarded-for': '203.0.113.9' },
    );
    await platform.call('DELETE', `/sandboxes/${sandboxID}`);
    await platform.call('DELETE', `/sandboxes/${sandboxID}`);
    const { user, token } = await platform.user(platform.team);
    await call(platform.socketPath, 'GET', '/teams', undefined, { authorization: `Bearer ${token}` });
    await call(platform.socketPath, 'POST', '/nodes/node-1', { status: 'draining' }, { 'x-admin-token': adminToken });
    await platform.call('POST', '/v2/sandboxes', { templateID: 'base' });

    const { entries } = await audit(platform);
    const byKey = { actor: { kind: 'apiKey', id: keyId }, teamID: platform.team.teamId };
    expect(entries).toMatchObject([
      { operation: 'createSandboxV2', status: 503, ...byKey },
      {
        operation: 'updateNode',
        target: 'node:node-1',
        actor: { kind: 'admin', id: null },
        teamID: null,
        before: { status: 'ready' },
        after: { status: 'draining' },
      },
      { operation: 'listTeams', actor: { kind: 'user', id: user.userId }, status: 200 },
      { operation: 'deleteSandbox', target: `sandbox:${sandboxID}`, status: 204, ...byKey },
      {
        operation: 'setSandboxTimeout',
        address: '203.0.113.9',
        status: 204,
        before: { endAt: expect.any(String) },
        after: { endAt: expect.any(String) },
      },
      {
        operation: 'createSandboxV2',
        target: `sandbox:${sandboxID}`,
        status: 201,
        ...byKey,
        after: { templateId: expect.any(String) },
      },
    ]);
    const text = JSON.stringify(await platform.store.db.selectFrom('audit_log').selectAll().execute());
    for (const secret of ['never-in-the-log', platform.key, platform.key.slice(4), token, adminToken])
      expect(text).not.toContain(secret);

    expect((await audit(platform, `target=sandbox:${sandboxID}`)).entries).toHaveLength(3);
    expect((await audit(platform, 'operation=updateNode')).entries).toHaveLength(1);
    expect((await audit(platform, `teamID=${platform.team.teamId}`)).entries).toHaveLength(4);
  });

  test('pages hold every entry once, and old ones are forgotten', async () => {
    await using platform = await Platform.start({ database });
    for (let i = 0; i < 5; i++) await platform.createSandbox();
    const seen: string[] = [];
    for (let token: string | null = ''; token !== null;) {
      const page = await audit(platform, `limit=2${token && `&nextToken=${token}`}`);
      seen.push(...page.entries.map(({ id }) => id));
      token = page.token;
    }
    expect(new Set(seen).size).toBe(5);
    expect(seen).toHaveLength(5);
    await platform.store.db
      .updateTable('audit_log')
      .set({ at_us: 1 } as never)
      .where('entry_id', 'in', seen.slice(0, 2))
      .execute();
    await reconcileAudit(platform.api.parts);
    expect((await audit(platform)).entries).toHaveLength(3);
  });

  test('what takes long to read counts as the requests that it takes as much time as', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox();
    const charged = spyOn(platform.api.parts.rateLimiter, 'spend');
    const read = async (path: string) => {
      charged.mockClear();
      expect((await platform.call('GET', path)).status).toBe(200);
      return charged.mock.calls.map(([, , requests]) => requests);
    };
    const logs = `/v2/sandboxes/${sandboxID}/logs`;
    for (const query of ['', '?cursor=1', '?direction=forward']) expect(await read(logs + query)).toEqual([]);
    for (const query of ['?search=x', '?level=error', '?logger=process'])
      expect(await read(logs + query)).toEqual([24]);
    const zeros = { cpuCount: 2, cpuUsedPct: 0, memUsed: 0, memTotal: 0, memCache: 0, diskUsed: 0, diskTotal: 0 };
    const samples = Array.from({ length: 120 }, (_, index) => ({ atSeconds: index + 1, ...zeros }));
    platform.node.sampled.set(sandboxID, samples);
    const metrics = `/sandboxes/${sandboxID}/metrics`;
    expect([await read(`${metrics}?start=82`), await read(metrics)]).toEqual([[0], [3]]);
    const team = `/teams/${platform.team.teamId}/metrics`;
    const timed = [
      ...[team, `${team}/max?metric=concurrent_sandboxes`, `${team}/templates`, '/limits', '/snapshots', '/volumes'],
      ...['/sandboxes', '/v2/sandboxes?text=a', '/events', '/events/sandboxes', `/events/sandboxes/${sandboxID}`],
      ...['/templates', '/v2/templates', '/default-templates', '/events/webhooks', '/secrets'],
    ];
    // Compares durations, which are unknown.
    for (const path of timed) expect([path, (await read(path)).length]).toEqual([path, 1]);
  });

  test('requests beyond the rate are refused with the time to wait, for each team by itself', async () => {
    await using platform = await Platform.start({ database, limits: { requestsPerSecond: 2 } });
    const fast = await platform.otherTeam('fast', { requestsPerSecond: 1000 });
    const first = await platform.call('GET', '/sandboxes');
    expect([first.headers.get('ratelimit-limit'), first.headers.get('ratelimit-remaining')]).toEqual(['20', '19']);
    const answers = await Promise.all(Array.from({ length: 60 }, () => platform.call('GET', '/sandboxes')));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(20);
    for (const { headers, body } of refused) {
      expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      expect(body).toMatchObject({ code: 429 });
    }
    expect((await platform.call('GET', '/sandboxes', undefined, { 'x-api-key': fast.key })).status).toBe(200);
    expect(
      (
        await call(platform.socketPath, 'GET', '/sandboxes', undefined, {
          'x-admin-token': adminToken,
          'x-team-id': platform.team.teamId,
        })
      ).status,
    ).toBe(200);
  });
});
