import { createHash, X509Certificate } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { roomOf } from '../../../src/api/placement/room.ts';
import type { TeamLimits } from '../../../src/api/team/record.ts';
import { limitsFrom } from '../../../src/api/team/rules/limits.ts';
import { partBytes, partsOf } from '../../../src/protocol/blob.ts';
import { AtollError } from '../../../src/base/error.ts';
import { silentLog } from '../../../src/base/telemetry/log.ts';
import type { NodeInfo } from '../../../src/protocol/node.ts';
import { machineAt } from '../../../src/wire/node-service.ts';
import { type Cluster, controlOf } from './cluster.ts';

/** By then, a cluster whose faults are healed has settled (docs/cluster.md). */
const restMs = 60_000;
/** How late a sandbox may end. */
const lateSeconds = 2;

/**
 * Waits until a cluster whose faults are healed has settled, and otherwise says what does not hold: rows, the machines'
 * sandboxes and routes agree, nothing is between two states, no ended process holds anything, and the store contains
 * exactly what its rows say. `folder`: that of a store in a directory.
 */
export async function atRest(cluster: Cluster, folder?: string): Promise<void> {
  let wrong: string[] = [];
  for (const deadline = performance.now() + restMs; performance.now() < deadline; await Bun.sleep(1_000)) {
    const checks = [states, machines, claims, layers, limits, times].map(check => check(cluster));
    wrong = (await Promise.all([...checks, store(cluster, folder)])).flat();
    if (wrong.length === 0) wrong = await routes(cluster);
    if (wrong.length === 0) wrong = (await Promise.all([credentials(cluster), strangers(cluster)])).flat();
    if (wrong.length === 0) return;
  }
  throw new AtollError('internal', `the cluster has not come to rest:\n${wrong.join('\n')}`);
}

/** Nothing is between two states (I2, I5). */
async function states({ query }: Cluster): Promise<string[]> {
  const rows = await query<{ sandbox_id: string; state: string }>(
    "select sandbox_id, state from sandboxes where state not in ('running', 'paused')",
  );
  return rows.map(row => `${row.sandbox_id} is ${row.state}`);
}

/** Each machine runs what the database says, and has nothing unknown (I1, I12, I13). */
async function machines(cluster: Cluster): Promise<string[]> {
  const rows = await cluster.query<{ node_id: string; info_json: string | null; given_up: number; rows: string }>(
    `select node_id, info_json, given_up,
       (select count(*) from sandboxes where sandboxes.node_id = cluster_nodes.node_id and state = 'running') as rows
     from cluster_nodes`,
  );
  const there = (await (await cluster.admin(0, 'GET', '/admin/orphans')).json()) as Record<string, unknown[]>;
  return [
    ...rows.flatMap(row => {
      const { sandboxCount } = JSON.parse(row.info_json ?? '{}') as { sandboxCount?: number };
      const isSame = row.given_up === 0 && sandboxCount === Number(row.rows);
      return isSame ? [] : [`machine ${row.node_id} runs ${sandboxCount} sandboxes, and has ${row.rows} rows`];
    }),
    ...Object.entries(there).flatMap(([kind, found]) =>
      found.map(thing => `an orphan: ${kind} ${JSON.stringify(thing)}`),
    ),
  ];
}

/** No ended process works on anything (I5). */
async function claims({ query }: Cluster): Promise<string[]> {
  const found: string[] = [];
  for (const [table, id] of [
    ['sandboxes', 'sandbox_id'],
    ['volumes', 'volume_id'],
    ['blobs', 'blob_id'],
  ]) {
    const rows = await query<{ id: string; replica_id: string }>(
      `select ${id} as id, replica_id from ${table} where replica_id is not null
         and replica_id not in (select replica_id from replicas)`,
    );
    found.push(...rows.map(row => `${table} ${row.id} is held by ${row.replica_id}, which is over`));
  }
  return found;
}

/** The layers of what is ready to start are in the store, where every machine gets them (I4). */
async function layers({ query }: Cluster): Promise<string[]> {
  if ((await query('select 1 from blob_store')).length === 0) return [];
  const builds = await query<{ build_id: string; layers_json: string }>(
    "select build_id, layers_json from builds where status = 'ready'",
  );
  const stored = await query<{ name: string }>("select name from blobs where kind = 'layer' and state = 'stored'");
  const there = new Set(stored.map(({ name }) => name));
  return builds.flatMap(({ build_id, layers_json }) =>
    (JSON.parse(layers_json) as string[])
      .filter(digest => !there.has(digest))
      .map(digest => `the store lacks layer ${digest} of build ${build_id}, which is ready`),
  );
}

/** No machine has promised more than it may, and no team has more than it may (I6). */
async function limits({ query }: Cluster): Promise<string[]> {
  const rows = await query<{ node_id: string; info_json: string | null; cpus: string; mib: string; count: string }>(
    `select node_id, info_json, coalesce(sum(cpu_count), 0) as cpus, coalesce(sum(memory_mib), 0) as mib,
       count(sandbox_id) as count
     from cluster_nodes left join sandboxes using (node_id) where state is null or state != 'paused'
     group by node_id, info_json`,
  );
  const teams = await query<{ team_id: string; count: string; limits_json: string }>(
    `select team_id, count(*) as count, limits_json from sandboxes join teams using (team_id)
     where state != 'paused' group by team_id, limits_json`,
  );
  return [
    ...rows.flatMap(({ node_id, info_json, cpus, mib, count }) => {
      if (info_json === null || count === '0') return [];
      const info = JSON.parse(info_json) as NodeInfo;
      const promised = { cpuCount: Number(cpus), memoryMiB: Number(mib), sandboxes: Number(count), starting: 0 };
      const { used } = roomOf(info, promised);
      const isWithin = used.cpu <= 1 && used.memory <= 1 && promised.sandboxes <= info.sandboxesMax;
      return isWithin ? [] : [`machine ${node_id} has promised more than it has: ${JSON.stringify(promised)}`];
    }),
    ...teams.flatMap(({ team_id, count, limits_json }) => {
      const own = JSON.parse(limits_json) as Partial<TeamLimits>;
      const { concurrentSandboxes } = limitsFrom({})({ limits: own });
      return Number(count) <= concurrentSandboxes ? [] : [`team ${team_id} has ${count} sandboxes`];
    }),
  ];
}

/** Nothing runs past its time, and nothing has timed out before its end (I7). */
async function times({ query }: Cluster): Promise<string[]> {
  const late = await query<{ sandbox_id: string; late: string }>(
    `select sandbox_id, extract(epoch from clock_timestamp()) - end_at_us / 1e6 as late from sandboxes
     where state = 'running' and end_at_us / 1e6 < extract(epoch from clock_timestamp()) - ${lateSeconds}`,
  );
  return late.map(({ sandbox_id, late: seconds }) => `the time of ${sandbox_id} was over ${seconds} seconds ago`);
}

/** A revoked key opens nothing at any control process, from the next request on (I8). */
async function credentials(cluster: Cluster): Promise<string[]> {
  const [team] = (await (await cluster.admin(0, 'GET', '/admin/teams')).json()) as { teamID: string }[];
  const keys = `/admin/teams/${team?.teamID}/api-keys`;
  const made = await cluster.admin(0, 'POST', keys, { name: 'of the invariants' });
  const { id, key } = (await made.json()) as { id: string; key: string };
  const statuses = (headers: Record<string, string>) =>
    Promise.all(
      cluster.controls.map(async control => (await control.call('GET', '/v2/sandboxes', undefined, headers)).status),
    );
  const before = await statuses({ 'X-API-Key': key });
  const revoked = await cluster.admin(0, 'DELETE', `${keys}/${id}`);
  const after = await statuses({ 'X-API-Key': key });
  const isRight = before.every(status => status === 200) && after.every(status => status === 401);
  return isRight ? [] : [`a key was answered ${before.join()}, and ${after.join()} once revoked (${revoked.status})`];
}

/**
 * A machine's certificate gives access to no machine, not even its own, and the port admits nobody without one (I11).
 */
async function strangers({ nodes }: Cluster): Promise<string[]> {
  const all = await Promise.all(
    nodes.flatMap(from =>
      nodes.map(async to => {
        const stolen = from.identity();
        const [host = '', port] = to.address.split(':');
        const certificates = [
          createHash('sha256').update(new X509Certificate(to.identity().certificate).raw).digest('hex'),
        ];
        const place = { nodeId: to.nodeId, host, port: Number(port), certificates };
        const machine = machineAt(to.nodeId, async () => ({ place, identity: stolen }), silentLog);
        const opened = await machine.node.list().then(
          () => true,
          () => false,
        );
        machine.close();
        return opened ? [`the certificate of machine ${from.nodeId} opens machine ${to.nodeId}`] : [];
      }),
    ),
  );
  return all.flat();
}

/** Everything needed is complete in the store, and everything in the store has a row (I3, I9). */
async function store({ query }: Cluster, folder: string | undefined): Promise<string[]> {
  const missing = await query<{ sandbox_id: string }>(
    `select sandbox_id from sandboxes where state = 'paused' and durability = 'cluster' and not exists
       (select 1 from blobs where kind = 'pause' and name = execution_id and blobs.state = 'stored')`,
  );
  const found = missing.map(row => `what ${row.sandbox_id} has kept is not in the store`);
  if (folder === undefined) return found;
  const blobs = await query<{ blob_id: string; kind: string; name: string; bytes: string; state: string }>(
    "select blob_id, kind, name, bytes, state from blobs where state != 'gone'",
  );
  const objects = new Map<string, number>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const [blobId, part] = path.split('/').slice(-2);
    // A file being written has another name.
    if (entry.isFile() && path.includes('/blobs/') && /^\d+$/.test(part ?? ''))
      objects.set(`${blobId}/${part}`, statSync(path, { throwIfNoEntry: false })?.size ?? 0);
  }
  const known = new Set(blobs.map(({ blob_id }) => blob_id));
  for (const { blob_id, kind, name, bytes, state } of blobs)
    for (let part = 0; state === 'stored' && part < partsOf(Number(bytes)); part++) {
      const wanted = Math.min(partBytes, Number(bytes) - part * partBytes);
      const size = objects.get(`${blob_id}/${String(part).padStart(5, '0')}`);
      if (size !== wanted)
        found.push(`part ${part} of ${kind} ${name} (${blob_id}) has ${size} bytes instead of ${wanted}`);
    }
  for (const object of objects.keys())
    if (!known.has(object.split('/')[0] ?? '')) found.push(`the object ${object} belongs to nothing`);
  return found;
}

/** Every control process reaches what runs, and nothing else (I2, I10). */
async function routes(cluster: Cluster): Promise<string[]> {
  const rows = await cluster.query<{ sandbox_id: string }>("select sandbox_id from sandboxes where state = 'running'");
  const asked = cluster.controls.flatMap((_, control) => rows.map(({ sandbox_id }) => ({ control, sandbox_id })));
  const answers = await Promise.all(
    asked.map(async ({ control, sandbox_id }) => {
      const headers = { 'E2b-Sandbox-Id': sandbox_id, 'E2b-Sandbox-Port': '49983' };
      const answer = await fetch(`${controlOf(cluster, control).url}/health`, { headers }).catch(() => undefined);
      return answer?.ok ? [] : [`control ${control} does not reach ${sandbox_id}: ${answer?.status}`];
    }),
  );
  return answers.flat();
}
