import { sql } from 'kysely';
import { createTeam } from '../../src/api/team/rules/provision-team.ts';
import { newSandboxId, newUuid } from '../../src/base/id.ts';
import type { NodeSandbox } from '../../src/protocol/node.ts';
import type { FakeCluster } from '../../test/api/support/fake-cluster.ts';

/** Rows that are written at a time. */
const batch = 500;
/** Teams that own the sandboxes, including the one that asks. */
const teamsCount = 100;

/**
 * Fills the database with running sandboxes, spread over the machines and teams and copied from one that control has
 * made, and makes the machines report that they have them.
 */
export async function insertRows({ apis, machines, call }: FakeCluster, count: number): Promise<void> {
  const [control] = apis;
  if (!control) throw new Error('there is no control process');
  const { db } = control.parts;
  const { body } = await call(0, 'POST', '/v2/sandboxes', { templateID: 'base', timeout: 36_000 });
  const { sandboxID } = body as { sandboxID: string };
  const like = await db
    .selectFrom('sandboxes')
    .selectAll()
    .where('sandbox_id', '=', sandboxID)
    .executeTakeFirstOrThrow();
  const teams = [like.team_id];
  for (let number = 1; number < teamsCount; number++)
    teams.push((await createTeam(control.parts, { name: `T${number}`, slug: `t${number}` })).teamId);
  const had = new Map<string, NodeSandbox[]>(machines.map(({ nodeId }) => [nodeId, []]));
  for (const { nodeId, node } of machines) {
    const own = node.list.bind(node);
    node.list = async () => [...(await own()), ...(had.get(nodeId) ?? [])];
  }
  for (let made = 0; made < count; made += batch) {
    const rows = Array.from({ length: Math.min(batch, count - made) }, (_, index) => ({
      ...like,
      sandbox_id: newSandboxId(),
      execution_id: newUuid(),
      team_id: teams[(made + index) % teams.length] ?? '',
      node_id: machines[(made + index) % machines.length]?.nodeId ?? '',
      started_at_us: like.started_at_us - made - index,
    }));
    // Machines get them before the database does: for a while, control leaves alone what it does not know.
    for (const row of rows)
      had
        .get(row.node_id)
        ?.push({
          sandboxId: row.sandbox_id,
          executionId: row.execution_id,
          startedAtMs: row.started_at_us / 1000,
          diskFailed: false,
          resources: { cpuCount: row.cpu_count, memoryMiB: row.memory_mib, diskMiB: row.disk_mib },
        });
    await db
      .insertInto('sandboxes')
      .values(rows as never)
      .execute();
  }
  // The server would do this by itself some time later.
  await sql`analyze`.execute(db);
}
