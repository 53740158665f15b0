import { afterAll, beforeAll, expect, setDefaultTimeout } from 'bun:test';
import { Sandbox } from 'e2b';
import { postgresPrograms } from '../api/postgres.ts';
import {
  type Cluster,
  connectionTo,
  controlOf,
  createOn,
  layersEverywhere,
  startCluster,
  twoMachines,
  until,
} from '../cluster/support/cluster.ts';
import { counted, startCounter } from '../cluster/support/counter.ts';
import { atRest } from '../cluster/support/invariants.ts';
import { inDirectory } from '../cluster/support/stores.ts';
import { testUnless } from '../support/skip.ts';

// What is lost with a control process, and with a machine that never comes back, with operators' default times.

setDefaultTimeout(15 * 60_000);
const programs = postgresPrograms();
const kind = inDirectory();
const clusterTest = testUnless(kind.skipped);
/** Ten seconds of lease, sixty of isolation, and five more that control waits. */
const givenUpMs = 75_000;
/** Rounds of the observing loops, on a busy machine. */
const slackMs = 10_000;

let cluster: Cluster;

beforeAll(async () => {
  if (programs) cluster = await startCluster(programs, { controls: 2, nodes: 2 }, {}, kind.start);
});
afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]();
  await kind.stop();
});

clusterTest('of a control process that is killed no request fails but those that it had', async () => {
  await layersEverywhere(cluster);
  const sandbox = await Sandbox.create('base', { ...connectionTo(cluster, 0), timeoutMs: 3_600_000 });
  const { apiKey } = controlOf(cluster, 0);
  // As a connection balancer does: unreachable servers are skipped.
  let turn = 0;
  const asked = async (path: string, headers: Record<string, string>) => {
    const first = turn++;
    for (let tries = 0; ; tries++) {
      const { url } = controlOf(cluster, (first + tries) % 2);
      try {
        return await fetch(`${url}${path}`, { headers: { ...headers, Connection: 'close' } });
      } catch (error) {
        if (tries > 0 || !String(error).includes('ECONNREFUSED')) throw error;
      }
    }
  };
  const requests = [
    () => asked('/v2/sandboxes', { 'X-API-Key': apiKey }),
    () => asked('/health', { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49983' }),
  ];
  const failures: { begunMs: number; what: string }[] = [];
  let answered = 0;
  let isOver = false;
  const clients = [0, 1, 2, 3].map(async client => {
    while (!isOver) {
      const begunMs = performance.now();
      const outcome = await requests[client % 2]?.().then(
        answer => (answer.ok ? 'ok' : `status ${answer.status}`),
        (error: unknown) => String(error),
      );
      if (outcome === 'ok') answered++;
      else failures.push({ begunMs, what: outcome ?? '' });
    }
  });
  await until('clients are answered', () => answered > 50);
  const { url } = controlOf(cluster, 0);
  await controlOf(cluster, 0).kill9();
  // Its edge ends with it, a moment later: until then it accepts connections.
  const isRefused = (error: unknown) => String(error).includes('ECONNREFUSED');
  await until('it takes no connection any more', () => fetch(`${url}/health`).then(() => false, isRefused));
  const killedMs = performance.now();
  const before = answered;
  await until('clients are answered by the other one', () => answered > before + 200);
  await controlOf(cluster, 0).restart();
  const since = answered;
  await until('clients are answered by both', () => answered > since + 200);
  isOver = true;
  await Promise.all(clients);
  expect(failures.filter(({ begunMs }) => begunMs > killedMs)).toEqual([]);
  expect(failures.length).toBeLessThanOrEqual(clients.length);
  process.stderr.write(`${answered} requests answered, ${failures.length} of ${clients.length} under way failed\n`);
  expect(await sandbox.kill()).toBe(true);
  await atRest(cluster, kind.folder());
});

clusterTest('of a machine that is destroyed control tells in time, and what is in the store goes on', async () => {
  const [lost, other] = twoMachines(cluster);
  const runs = await createOn(cluster, lost, { timeoutMs: 3_600_000 });
  const stored = await createOn(cluster, lost, { timeoutMs: 3_600_000 });
  const before = await startCounter(stored);
  await startCounter(runs);
  const pause = await controlOf(cluster, 0).call('POST', `/sandboxes/${stored.sandboxId}/pause`, {
    durability: 'cluster',
  });
  expect([pause.status, pause.headers.get('X-Pause-Durability')]).toEqual([204, 'cluster']);
  await lost.destroy();
  const destroyedMs = performance.now();
  // What is in the store can be used as soon as control notices.
  const again = await Sandbox.connect(stored.sandboxId, connectionTo(cluster, 1)).catch(async () => {
    await until('the machine is known to be away', async () => {
      const answer = await controlOf(cluster, 1).call('POST', `/sandboxes/${stored.sandboxId}/connect`, {
        timeout: 3600,
      });
      return answer.ok;
    });
    return Sandbox.connect(stored.sandboxId, connectionTo(cluster, 1));
  });
  process.stderr.write(`resumed elsewhere ${Math.round(performance.now() - destroyedMs)} ms after it was destroyed\n`);
  expect(await cluster.homeOf(stored.sandboxId)).toBe(other);
  expect((await counted(again)).pid).toBe(before.pid);
  // The running ones are reported unreachable, once the machine must have paused them.
  const stateOf = async () => (await Sandbox.getInfo(runs.sandboxId, connectionTo(cluster, 0))).state;
  await until('what ran there is told not to run', async () => (await stateOf()) === 'paused');
  const toldMs = performance.now() - destroyedMs;
  process.stderr.write(`told ${Math.round(toldMs)} ms after it was destroyed\n`);
  expect(toldMs).toBeLessThan(givenUpMs + slackMs);
  const refused = await controlOf(cluster, 0).call('POST', `/sandboxes/${runs.sandboxId}/connect`, { timeout: 60 });
  expect([refused.status, await refused.text()]).toEqual([503, expect.stringContaining('out of reach')]);
  // Once an operator says that it never comes back, it is lost and reported so.
  expect((await cluster.admin(0, 'DELETE', `/admin/nodes/${lost.nodeId}`)).status).toBe(200);
  cluster.nodes.splice(cluster.nodes.indexOf(lost), 1);
  for (const control of [0, 1])
    await expect(Sandbox.getInfo(runs.sandboxId, connectionTo(cluster, control))).rejects.toThrow('not found');
  const events = await cluster.query<{ body_json: string }>(
    `select body_json from events where subject_id = '${runs.sandboxId}' and type = 'sandbox.lifecycle.killed'`,
  );
  expect(events).toHaveLength(1);
  expect(await again.kill()).toBe(true);
  await atRest(cluster, kind.folder());
});
