import { expect, setDefaultTimeout } from 'bun:test';
import { join } from 'node:path';
import { createLog } from '../../../src/base/telemetry/log.ts';
import { openStore } from '../../../src/api/database/database.ts';
import { SandboxDirectory } from '../../../src/api/sandbox/directory/directory.ts';
import { reconcileNodes } from '../../../src/api/sandbox/reconcilers/adoption.ts';
import { reconcileLeftovers } from '../../../src/api/sandbox/reconcilers/leftovers.ts';
import { findSandboxOfAnyTeam } from '../../../src/api/sandbox/store/read.ts';
import { directoryFor } from '../../../src/api/sandbox/workflows/edge-protocol.ts';
import { startApi, type Api } from '../../../src/api/start.ts';
import type { NodeProtocol } from '../../../src/protocol/node.ts';
import { nodeTable } from '../../../src/protocol/wire/node-table.ts';
import { testUnless } from '../../support/skip.ts';
import { wiredInMemory } from '../../wire/support/pair.ts';
import type { ChildOptions } from '../crash-child.ts';
import { Platform, call, until } from '../platform.ts';
import { Receiver } from '../webhook-receiver.ts';
import { SharedDatabases, postgresPrograms, withoutPostgres } from '../postgres.ts';
import { randomOf } from '../random.ts';

// Several api processes on one database and one node: none of them mistakes another's work for the leftovers of a
// crash.

setDefaultTimeout(120_000);
const programs = postgresPrograms();
const postgresTest = testUnless(withoutPostgres());
const seed = Number(process.env['ATOLL_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

/** Both look for deliveries all the time, and neither waits for the other's. */
const webhooks = { allowPrivateAddresses: true, pollMs: 5, timeoutMs: 30_000 };

/** A platform, and a second api beside it. */
async function withTwo(
  work: (scene: { first: Platform; second: Api; secondSocket: string }) => Promise<void>,
  leaseSeconds = 15,
): Promise<void> {
  await using cluster = await SharedDatabases.open(programs!);
  await using first = await Platform.start({
    database: { name: 'PostgreSQL', location: () => cluster.newStore() },
    webhooks,
  });
  await using store = await openStore(first.location);
  const secondSocket = join(first.directory, 'second.sock');
  const second = await startApi({
    socketPath: secondSocket,
    store,
    node: wiredInMemory(nodeTable, first.node as NodeProtocol, 'api').remote,
    seed: new Uint8Array(32).fill(7),
    log: createLog('warn', line => first.logged.push(line)),
    replica: { leaseSeconds },
    webhooks,
  });
  try {
    await work({ first, second, secondSocket });
  } finally {
    await second.stop();
  }
}

/** What a process's reconcilers do during a slow call, several times over. */
async function reconcileOften({ parts }: Api): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await reconcileLeftovers(parts);
    await reconcileNodes(parts);
  }
}

postgresTest('what one works on for long is left to it: create, pause, resume, snapshot, kill', async () => {
  await withTwo(async ({ first, second }) => {
    const reached = { calls: [] as string[] };
    first.node.before = async name => {
      if (name === 'list') return;
      reached.calls.push(name);
      await reconcileOften(second);
    };
    const { sandboxID } = await first.createSandbox();
    expect((await first.call('POST', `/sandboxes/${sandboxID}/pause`, {})).status).toBe(204);
    expect((await first.call('POST', `/sandboxes/${sandboxID}/connect`, { timeout: 60 })).status).toBe(201);
    expect((await first.call('POST', `/sandboxes/${sandboxID}/snapshots`, {})).status).toBe(201);
    expect((await first.call('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
    expect(reached.calls).toEqual(expect.arrayContaining(['create', 'pause', 'resume', 'snapshot', 'kill']));
    expect(first.node.executions()).toEqual([]);
  });
});

postgresTest('each knows at once what the other has made and ended', async () => {
  await withTwo(async ({ first, second, secondSocket }) => {
    const { sandboxID } = await first.createSandbox();
    expect(await second.forEdge.find(sandboxID)).toMatchObject({ sandboxId: sandboxID, state: 'running' });
    const key = { 'x-api-key': first.key };
    expect((await call(secondSocket, 'POST', `/sandboxes/${sandboxID}/pause`, {}, key)).status).toBe(204);
    await until(() => first.api.directory.find(sandboxID)?.state === 'paused');
    expect((await first.call('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
    await until(() => second.directory.find(sandboxID) === undefined);
    expect(await second.forEdge.find(sandboxID)).toBeNull();
  });
});

postgresTest('what the database answers for the edge is older than what has become known meanwhile', async () => {
  await withTwo(async ({ first, second: { parts } }) => {
    const { sandboxID } = await first.createSandbox();
    const sandbox = await findSandboxOfAnyTeam(parts.db, sandboxID);
    if (!sandbox) throw new Error('it was just made');
    const directory = new SandboxDirectory(() => ({ accessToken: null, trafficToken: null }));
    const db = parts.db.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        directory.apply({ ...sandbox, state: 'paused' });
        return result;
      },
    });
    expect(await directoryFor({ ...parts, db, directory }).find(sandboxID)).toMatchObject({ state: 'paused' });
  });
});

postgresTest('what one that died had begun is finished by another, and not before its lease is over', async () => {
  await using cluster = await SharedDatabases.open(programs!);
  await using first = await Platform.start({ database: { name: 'PostgreSQL', location: () => cluster.newStore() } });
  const { sandboxID } = await first.createSandbox();
  const options: ChildOptions = {
    location: first.location,
    nodeDirectory: join(first.directory, 'node'),
    socketPath: join(first.directory, 'child.sock'),
    seed: 1,
    hangsAt: 'pause',
    leaseSeconds: 3,
  };
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../crash-child.ts'), JSON.stringify(options)], {
    stdout: 'pipe',
    stderr: 'inherit',
    stdin: 'ignore',
  });
  await child.stdout.getReader().read();
  const stateOf = async () =>
    (
      await first.store.db
        .selectFrom('sandboxes')
        .select('state')
        .where('sandbox_id', '=', sandboxID)
        .executeTakeFirstOrThrow()
    ).state;
  const asked = call(options.socketPath, 'POST', `/sandboxes/${sandboxID}/pause`, {}, { 'x-api-key': first.key });
  const cutOff = asked.then(
    () => 'answered',
    () => 'cut off',
  );
  await until(async () => (await stateOf()) === 'pausing');
  await reconcileOften(first.api);
  expect(await stateOf()).toBe('pausing');
  child.kill('SIGKILL');
  await child.exited;
  expect(await cutOff).toBe('cut off');
  await until(async () => (await stateOf()) === 'running', 30_000);
  expect(await first.call('GET', `/sandboxes/${sandboxID}`)).toMatchObject({ status: 200, body: { state: 'running' } });
});

postgresTest('one that stops gives up its work at once, and a start in its place too', async () => {
  await withTwo(async ({ first, second }) => {
    const replicas = () => first.store.db.selectFrom('replicas').select(['replica_id', 'name']).execute();
    const before = await replicas();
    expect(before).toHaveLength(2);
    await second.stop();
    expect(await replicas()).toHaveLength(1);
    await first.restart();
    const after = await replicas();
    expect(after.map(({ name }) => name)).toEqual([before[0]?.name ?? '']);
    expect(after[0]?.replica_id).not.toBe(before[0]?.replica_id ?? '');
  });
});

postgresTest('an event is told once to each who wants it, whichever process made it and both deliver', async () => {
  await withTwo(async ({ first, secondSocket }) => {
    await using receiver = await Receiver.start();
    // Slow enough for the other process to look while a delivery is in progress.
    receiver.answer = response => void setTimeout(() => response.writeHead(204).end(), 50);
    const key = { 'x-api-key': first.key };
    const at = { first: first.socketPath, second: secondSocket };
    const ask = (who: keyof typeof at, method: string, path: string, body?: unknown) =>
      call(at[who], method, path, body, key);
    const events = ['created', 'updated', 'killed'].map(change => `sandbox.lifecycle.${change}`);
    const hook = await ask('first', 'POST', '/events/webhooks', { name: 'hook', url: receiver.url, events });
    expect(hook.status).toBe(201);
    const made: string[] = [];
    for (let round = 0; round < 12; round++) {
      const [one, other] = round % 2 === 0 ? (['first', 'second'] as const) : (['second', 'first'] as const);
      const { body } = await ask(one, 'POST', '/v2/sandboxes', { templateID: 'base' });
      const { sandboxID } = body as { sandboxID: string };
      made.push(sandboxID);
      expect((await ask(other, 'POST', `/sandboxes/${sandboxID}/timeout`, { timeout: 100 })).status).toBe(204);
      expect((await ask(one, 'DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
    }
    await until(() => made.every(sandboxId => receiver.typesOf(sandboxId).length >= 3));
    const { id } = hook.body as { id: string };
    await until(async () => {
      const all = (await ask('second', 'GET', `/events/webhooks/${id}/deliveries?limit=100`)).body as {
        state: string;
      }[];
      return all.length === 36 && all.every(({ state }) => state === 'delivered');
    });
    for (const sandboxId of made) expect(receiver.typesOf(sandboxId)).toEqual(['created', 'updated', 'killed']);
    const ids = receiver.received.map(received => received.id);
    expect([ids.length, new Set(ids).size]).toEqual([36, 36]);
    // Both processes report the same events, each once.
    const [ofFirst, ofSecond] = await Promise.all(
      (['first', 'second'] as const).map(who => ask(who, 'GET', '/events/sandboxes?limit=100')),
    );
    expect(ofFirst?.body).toEqual(ofSecond?.body);
  });
});

postgresTest(`two under load agree with the node and with what was answered (ATOLL_TEST_SEED=${seed})`, async () => {
  await withTwo(async ({ first, second, secondSocket }) => {
    const random = randomOf(seed);
    const pause = () => Bun.sleep(random() * 10);
    first.node.before = pause;
    first.node.after = pause;
    const key = { 'x-api-key': first.key };
    const sockets = [first.socketPath, secondSocket];
    const ask = (method: string, path: string, body?: unknown) =>
      call(sockets[Math.floor(random() * 2)] ?? '', method, path, body, key);
    const alive = new Set<string>();
    const gone = new Set<string>();
    const client = async () => {
      for (let operation = 0; operation < 12; operation++) {
        const created = await ask('POST', '/v2/sandboxes', { templateID: 'base', timeout: 3600 });
        expect(created.status).toBe(201);
        const { sandboxID } = created.body as { sandboxID: string };
        if (random() < 0.5) {
          expect((await ask('POST', `/sandboxes/${sandboxID}/pause`, {})).status).toBe(204);
          if (random() < 0.5)
            expect((await ask('POST', `/sandboxes/${sandboxID}/connect`, { timeout: 3600 })).status).toBe(201);
        }
        if (random() < 0.5) {
          expect((await ask('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
          gone.add(sandboxID);
        } else alive.add(sandboxID);
      }
    };
    const disturbed = { over: false };
    const disturb = async (api: Api) => {
      while (!disturbed.over) await reconcileOften(api);
    };
    const disturbing = [disturb(first.api), disturb(second)];
    await Promise.all(Array.from({ length: 4 }, client)).finally(() => (disturbed.over = true));
    await Promise.all(disturbing);
    const rows = await first.store.db.selectFrom('sandboxes').select(['sandbox_id', 'state', 'replica_id']).execute();
    expect(new Set(rows.map(row => row.sandbox_id))).toEqual(alive);
    expect(rows.filter(row => row.replica_id !== null)).toEqual([]);
    for (const { sandbox_id: id, state } of rows)
      for (const api of [first.api, second]) {
        await until(() => api.directory.find(id)?.state === state);
      }
    for (const id of gone)
      expect([first.api.directory.find(id), await second.forEdge.find(id)]).toEqual([undefined, null]);
    const there = [...first.node.executions(), ...first.node.paused()].map(({ sandboxId }) => sandboxId);
    expect(new Set(there)).toEqual(alive);
  });
});
