import { expect, setDefaultTimeout } from 'bun:test';
import { concurrentTestUnless } from '../support/skip.ts';
import { adminToken, call, Platform, until } from '../api/platform.ts';
import { startWire } from '../api/postgres-wire.ts';
import { PostgresCluster, postgresPrograms } from '../api/postgres.ts';

setDefaultTimeout(120_000);
const programs = postgresPrograms();
const onPostgres = concurrentTestUnless(
  programs === null ? 'PostgreSQL is not installed (Debian: apt-get install postgresql)' : undefined,
);

/** Long enough for every reconciler that could change something by itself. */
const aWhileMs = 3_500;
const isBack = async (platform: Platform) => (await platform.call('GET', '/health')).status === 200;

onPostgres('a database that is away is told, and nothing that was refused happens when it is back', async () => {
  await using cluster = await PostgresCluster.start(programs ?? '');
  const location = await cluster.newStore();
  await using platform = await Platform.start({ database: { name: 'PostgreSQL', location: async () => location } });
  const { sandboxID } = await platform.createSandbox();
  const before = (await platform.call('GET', `/sandboxes/${sandboxID}`)).body;
  for (const how of ['fast', 'immediate'] as const) {
    await cluster.stop(how);
    await until(async () => !(await isBack(platform)));
    const health = await call(platform.socketPath, 'GET', '/health');
    expect(health).toMatchObject({
      status: 503,
      body: { code: 503, error_code: 'database_unavailable', message: 'database: does not answer' },
    });
    const asked: [string, string, unknown?][] = [
      ['GET', '/v2/sandboxes'],
      ['GET', `/sandboxes/${sandboxID}`],
      ['POST', '/v2/sandboxes', { templateID: 'base' }],
      ['DELETE', `/sandboxes/${sandboxID}`],
      ['POST', `/sandboxes/${sandboxID}/timeout`, { timeout: 7 }],
      ['POST', `/sandboxes/${sandboxID}/pause`],
      ['GET', '/templates'],
      ['POST', '/secrets', { name: 'a', value: 'b' }],
      ['POST', '/events/webhooks', { name: 'w', url: 'https://example.com/', events: ['sandbox.lifecycle.created'] }],
    ];
    for (const [method, path, body] of asked) {
      const answer = await platform.call(method, path, body);
      expect({
        method,
        path,
        status: answer.status,
        body: answer.body,
        retry: answer.headers.get('retry-after'),
      }).toMatchObject({ status: 503, body: { code: 503, error_code: 'database_unavailable' }, retry: '2' });
    }
    const asOperator = await call(platform.socketPath, 'GET', '/admin/teams', undefined, {
      'x-admin-token': adminToken,
    });
    expect(asOperator.status).toBe(503);
    await cluster.resume();
    await until(() => isBack(platform), 60_000);
    // A window for reconcilers: nothing may come in it.
    await Bun.sleep(aWhileMs);
    expect((await platform.call('GET', `/sandboxes/${sandboxID}`)).body).toEqual(before);
    expect((await platform.call('GET', '/secrets')).body).toEqual([]);
    expect(platform.node.executions()).toHaveLength(1);
  }
  expect((await platform.call('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
});

onPostgres(
  'a commit whose answer was lost is asked about: what was made is answered so, what was not is not',
  async () => {
    await using cluster = await PostgresCluster.start(programs ?? '');
    await cluster.newDatabase();
    await using wire = await startWire(cluster.socketPath, 'test1');
    await using platform = await Platform.start({
      database: { name: 'PostgreSQL', location: async () => wire.location },
    });
    const [first, second, third] = [
      await platform.createSandbox(),
      await platform.createSandbox(),
      await platform.createSandbox(),
    ];
    const stateOf = async (id: string) => (await platform.call('GET', `/sandboxes/${id}`)).status;

    wire.cutAtCommit('killing', 'after', true);
    expect((await platform.call('DELETE', `/sandboxes/${first.sandboxID}`)).status).toBe(204);
    expect([wire.cuts, await stateOf(first.sandboxID)]).toEqual([1, 404]);

    wire.cutAtCommit('killing', 'before', true);
    expect(await platform.call('DELETE', `/sandboxes/${second.sandboxID}`)).toMatchObject({
      status: 503,
      body: { message: expect.stringContaining('nothing was changed') },
    });
    // A window for reconcilers: nothing may come in it.
    await Bun.sleep(aWhileMs);
    expect([wire.cuts, await stateOf(second.sandboxID), platform.node.executions().length]).toEqual([2, 200, 2]);

    for (const how of ['before', 'after'] as const) {
      const { sandboxID } = how === 'before' ? second : third;
      wire.cutAtCommit('killing', how, false);
      const answer = await platform.call('DELETE', `/sandboxes/${sandboxID}`);
      expect(answer).toMatchObject({
        status: 500,
        body: { error_code: 'database_outcome_unknown', message: expect.stringContaining('was ended') },
      });
      // It is true when it is said, whatever the database has written down.
      expect(platform.api.directory.find(sandboxID)).toBeUndefined();
      expect(platform.node.executions().some(execution => execution.sandboxId === sandboxID)).toBe(false);
      wire.mend();
      await until(() => isBack(platform), 60_000);
      // Asked again, as the answer says: it may be gone by now, and a row that still says `running` is removed.
      expect([204, 404]).toContain((await platform.call('DELETE', `/sandboxes/${sandboxID}`)).status);
      expect(await stateOf(sandboxID)).toBe(404);
    }
  },
);

onPostgres('a change that was made is answered so although its audit entry has to wait', async () => {
  await using cluster = await PostgresCluster.start(programs ?? '');
  const location = await cluster.newStore();
  await using platform = await Platform.start({ database: { name: 'PostgreSQL', location: async () => location } });
  const { sandboxID } = await platform.createSandbox();
  platform.node.after = async called => {
    if (called === 'kill') await cluster.stop('immediate');
    platform.node.after = async () => {};
  };
  expect((await platform.call('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
  await cluster.resume();
  const entries = async () => {
    const answer = await call(platform.socketPath, 'GET', '/admin/audit?operation=deleteSandbox', undefined, {
      'x-admin-token': adminToken,
    });
    return answer.status === 200 ? (answer.body as { target: string }[]).map(({ target }) => target) : [];
  };
  await until(async () => (await entries()).length === 1, 60_000);
  expect(await entries()).toEqual([`sandbox:${sandboxID}`]);
  await until(async () => (await platform.store.db.selectFrom('sandboxes').selectAll().execute()).length === 0, 60_000);
});

onPostgres('whatever was under way when the database crashed has happened or has not, and stays so', async () => {
  await using cluster = await PostgresCluster.start(programs ?? '');
  const location = await cluster.newStore();
  await using platform = await Platform.start({
    database: { name: 'PostgreSQL', location: async () => location },
    limits: { requestsPerSecond: 0 },
  });
  const made = new Set<string>();
  const ended = new Set<string>();
  const doubtful = new Set<string>();
  const answers: number[] = [];
  const storm = { over: false };
  const worker = async () => {
    while (!storm.over) {
      const created = await platform.call('POST', '/v2/sandboxes', { templateID: 'base', timeout: 3600 });
      answers.push(created.status);
      if (created.status !== 201) {
        await Bun.sleep(20);
        continue;
      }
      const { sandboxID } = created.body as { sandboxID: string };
      made.add(sandboxID);
      answers.push((await platform.call('POST', `/sandboxes/${sandboxID}/timeout`, { timeout: 1800 })).status);
      if (made.size % 3 === 0) continue;
      const killed = await platform.call('DELETE', `/sandboxes/${sandboxID}`);
      answers.push(killed.status);
      (killed.status === 204 ? ended : doubtful).add(sandboxID);
    }
  };
  const workers = Array.from({ length: 6 }, worker);
  for (let crash = 0; crash < 3; crash++) {
    const enough = made.size + 10;
    await until(() => made.size >= enough, 60_000);
    await cluster.stop('immediate');
    await Bun.sleep(300);
    await cluster.resume();
    await until(() => isBack(platform), 60_000);
  }
  storm.over = true;
  await Promise.all(workers);
  expect(answers.filter(status => status >= 500).length).toBeGreaterThan(3);
  expect(answers.filter(status => ![201, 204, 500, 503].includes(status))).toEqual([]);
  const running = () =>
    platform.node
      .executions()
      .map(({ sandboxId }) => sandboxId)
      .toSorted();
  const alive = async () =>
    ((await platform.call('GET', '/sandboxes')).body as { sandboxID: string; endAt: string }[])
      .map(({ sandboxID, endAt }) => `${sandboxID} ${endAt}`)
      .toSorted();
  const isSettled = async () => {
    const lines = await alive();
    return lines.map(line => line.split(' ')[0] ?? '').join() === running().join();
  };
  // Twice in a row: reconcilers bring rows and sandboxes into agreement.
  await until(isSettled, 60_000);
  // A window for the reconcilers' next rounds.
  await Bun.sleep(aWhileMs);
  await until(isSettled, 60_000);
  const settled = await alive();
  const ids = settled.map(line => line.split(' ')[0] ?? '');
  expect(ids.filter(id => !made.has(id))).toEqual([]);
  expect(ids.filter(id => ended.has(id))).toEqual([]);
  expect([...made].filter(id => !ended.has(id) && !doubtful.has(id) && !ids.includes(id))).toEqual([]);
  expect(running()).toEqual(ids.toSorted());
  // A window for reconcilers: nothing may come in it.
  await Bun.sleep(aWhileMs);
  expect(await alive()).toEqual(settled);
});
