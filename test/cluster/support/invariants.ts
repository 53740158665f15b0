import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { partBytes, partsOf } from '../../../src/protocol/blob.ts';
import { AtollError } from '../../../src/base/error.ts';
import { type Cluster, controlOf } from './cluster.ts';

/** By then a cluster whose faults are healed has come to rest (docs/cluster.md). */
const restMs = 60_000;

/**
 * Waits until a cluster whose faults are healed has come to rest, and says what does not hold where it does not: rows,
 * sandboxes of machines and routes are the same, nothing is between two states, nobody who is over holds anything, and
 * the store has what its rows say and nothing else. `folder`: of a store in a directory.
 */
export async function atRest(cluster: Cluster, folder?: string): Promise<void> {
  let wrong: string[] = [];
  for (const deadline = performance.now() + restMs; performance.now() < deadline; await Bun.sleep(1_000)) {
    wrong = (await Promise.all([states(cluster), machines(cluster), claims(cluster), store(cluster, folder)])).flat();
    if (wrong.length === 0) wrong = await routes(cluster);
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

/** Each machine runs what the database says, and has nothing that nobody knows (I1, I12, I13). */
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

/** Nobody who is over works on anything (I5). */
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

/** What is needed is in the store whole, and what is in the store has a row (I3, I9). */
async function store({ query }: Cluster, folder: string | undefined): Promise<string[]> {
  const missing = await query<{ sandbox_id: string }>(
    `select sandbox_id from sandboxes where state = 'paused' and durability = 'cluster' and not exists
       (select 1 from blobs where kind = 'pause' and name = execution_id and blobs.state = 'stored')`,
  );
  const found = missing.map(row => `what ${row.sandbox_id} has kept is not in the store`);
  if (folder === undefined) return found;
  const blobs = await query<{ blob_id: string; bytes: string; state: string }>(
    "select blob_id, bytes, state from blobs where state != 'gone'",
  );
  const objects = new Map<string, number>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const [blobId, part] = path.split('/').slice(-2);
    // What is being written has another name.
    if (entry.isFile() && path.includes('/blobs/') && /^\d+$/.test(part ?? ''))
      objects.set(`${blobId}/${part}`, statSync(path, { throwIfNoEntry: false })?.size ?? 0);
  }
  const known = new Set(blobs.map(({ blob_id }) => blob_id));
  for (const { blob_id, bytes, state } of blobs)
    for (let part = 0; state === 'stored' && part < partsOf(Number(bytes)); part++) {
      const wanted = Math.min(partBytes, Number(bytes) - part * partBytes);
      const size = objects.get(`${blob_id}/${String(part).padStart(5, '0')}`);
      if (size !== wanted) found.push(`part ${part} of blob ${blob_id} has ${size} bytes instead of ${wanted}`);
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
