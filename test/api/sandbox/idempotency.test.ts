import { expect, test } from 'bun:test';
import { reconcileKeys } from '../../../src/api/sandbox/reconcilers/idempotency.ts';
import { idempotencyBounds } from '../../../src/protocol/api/sandbox.ts';
import { onEachDatabase } from '../databases.ts';
import { call, Platform } from '../platform.ts';

const body = { templateID: 'base', timeout: 60, network: { allowPublicTraffic: false } };

onEachDatabase(database => {
  test('the same create with the same key makes one sandbox, and is answered alike for a day', async () => {
    await using platform = await Platform.start({ database });
    const create = (key: string, asked: object = body, path = '/v2/sandboxes', headers = {}) =>
      platform.call('POST', path, asked, { 'idempotency-key': key, ...headers });
    const answers = await Promise.all(Array.from({ length: 5 }, () => create('once')));
    const first = answers[0]!;
    expect(Object.keys(first.body as object)).toContain('trafficAccessToken');
    for (const { status, body } of answers) expect([status, body]).toEqual([201, first.body]);
    expect(platform.node.created).toHaveLength(1);

    const { sandboxID } = first.body as { sandboxID: string };
    expect((await platform.call('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
    await platform.restart();
    expect((await create('once')).body).toEqual(first.body);
    expect(platform.node.created).toHaveLength(1);

    for (const [asked, path] of [
      [{ ...body, timeout: 61 }, '/v2/sandboxes'],
      [body, '/sandboxes'],
    ] as const) {
      const other = await create('once', asked, path);
      expect(other.status).toBe(409);
      expect(other.body).toMatchObject({ error_code: 'idempotency_request_mismatch' });
    }
    const { key } = await platform.otherTeam();
    for (const answer of [await create('twice'), await create('once', body, '/v2/sandboxes', { 'x-api-key': key })]) {
      expect(answer.status).toBe(201);
      expect((answer.body as { sandboxID: string }).sandboxID).not.toBe(sandboxID);
    }
    for (const bad of ['', 'a b', 'x'.repeat(idempotencyBounds.keyCharactersMax + 1)])
      expect((await create(bad)).status).toBe(400);

    const { parts } = platform.api;
    const later = (hours: number) => () => parts.clock() + hours * 3600e6;
    await reconcileKeys({ db: parts.db, clock: later(idempotencyBounds.keptHours - 1) });
    expect((await create('once')).body).toEqual(first.body);
    await reconcileKeys({ db: parts.db, clock: later(idempotencyBounds.keptHours + 1) });
    expect((await create('once')).body).not.toEqual(first.body);
  });

  test('a crash before a create was answered leaves one sandbox: that of the request that is tried again', async () => {
    await using platform = await Platform.start({ database });
    const create = () => platform.call('POST', '/v2/sandboxes', body, { 'idempotency-key': 'once' });
    const { sandboxID } = (await create()).body as { sandboxID: string };
    const { db } = platform.store;
    // The state after a process that had started the sandbox and told nobody: both rows belong to its transaction.
    await platform.api.stop();
    await db.updateTable('sandboxes').set({ state: 'starting' }).where('sandbox_id', '=', sandboxID).execute();
    await db.updateTable('idempotency_keys').set({ answered: 0 }).execute();
    await platform.restart();
    const again = await create();
    expect(again.status).toBe(201);
    expect(again.body).not.toMatchObject({ sandboxID });
    expect((await create()).body).toEqual(again.body);
    const running = (await platform.call('GET', '/v2/sandboxes')).body as { sandboxID: string }[];
    expect(running.map(sandbox => sandbox.sandboxID)).toEqual([(again.body as { sandboxID: string }).sandboxID]);
    expect(platform.node.executions()).toHaveLength(1);
  });

  test('a create that fails after it was published frees its key', async () => {
    await using platform = await Platform.start({ database, features: { headerRules: true, egressDomains: true } });
    await platform.call('POST', '/secrets', { name: 'k', value: 'before' });
    const rules = { 'api.example.com': [{ transform: { headers: { A: '${e2b.secrets.k}' } } }] };
    const create = () =>
      platform.call('POST', '/v2/sandboxes', { ...body, network: { rules } }, { 'idempotency-key': 'once' });
    // A change of the secret while the sandbox starts can't be brought to it.
    platform.node.after = async call => {
      if (call !== 'create') return;
      platform.node.after = async () => {};
      await platform.call('POST', '/secrets/k', { value: 'while it starts' });
      platform.node.before = async call => {
        if (call === 'updateNetwork') throw new Error('the machine fails');
      };
    };
    expect((await create()).status).toBe(500);
    platform.node.before = async () => {};
    const again = await create();
    expect(again.status).toBe(201);
    const { sandboxID } = again.body as { sandboxID: string };
    expect((await platform.call('GET', `/sandboxes/${sandboxID}`)).status).toBe(200);
    expect((await create()).body).toEqual(again.body);
  });

  if (database.name === 'PostgreSQL')
    test('two api processes that are asked with one key at the same time make one sandbox', async () => {
      await using platform = await Platform.start({ database });
      await using replica = await platform.replica();
      const headers = { 'x-api-key': platform.key, 'idempotency-key': 'once' };
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, n) =>
          call(n % 2 === 0 ? platform.socketPath : replica.socketPath, 'POST', '/v2/sandboxes', body, headers),
        ),
      );
      for (const answer of answers) expect([answer.status, answer.body]).toEqual([201, answers[0]!.body]);
      expect(platform.node.created).toHaveLength(1);
      const other = await call(replica.socketPath, 'POST', '/v2/sandboxes', { ...body, timeout: 61 }, headers);
      expect(other.body).toMatchObject({ error_code: 'idempotency_request_mismatch' });
    });

  test('a create that failed leaves its key free, one that is under way is waited for', async () => {
    await using platform = await Platform.start({ database });
    const create = () => platform.call('POST', '/v2/sandboxes', body, { 'idempotency-key': 'once' });
    let isBroken = true;
    const reached = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    platform.node.before = async call => {
      if (call !== 'create') return;
      if (isBroken) throw new Error('broken');
      reached.resolve();
      await goOn.promise;
    };
    expect((await create()).status).toBe(500);
    isBroken = false;
    const first = create();
    await reached.promise;
    const second = create();
    goOn.resolve();
    expect((await second).body).toEqual((await first).body);
    expect((await first).status).toBe(201);
    expect(platform.node.executions()).toHaveLength(1);
  });

  test('what is known of a key counts before limits', async () => {
    await using platform = await Platform.start({ database, limits: { concurrentSandboxes: 1 } });
    const create = (key: string) => platform.call('POST', '/v2/sandboxes', body, { 'idempotency-key': key });
    const first = await create('once');
    expect((await create('once')).body).toEqual(first.body);
    expect((await create('twice')).status).toBe(429);
  });
});
