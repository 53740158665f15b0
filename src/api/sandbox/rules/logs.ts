import type { ReadSandboxLogs, SandboxLogEntry } from '../../../protocol/logs.ts';
import { placesOf } from '../store/past.ts';
import { parseSandboxId, sandboxNotFound } from './find.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Db } from '../../database/db.ts';
import type { Nodes } from '../../placement/nodes.ts';

/**
 * What happened in a sandbox of the team, also when it is no more. Throws `not_found`, `invalid` for a text that is no
 * ID.
 */
export async function readSandboxLogs(
  { db, nodes }: { db: Db; nodes: Nodes },
  team: TeamRecord,
  idText: string,
  page: Omit<ReadSandboxLogs, 'sandboxId'>,
): Promise<SandboxLogEntry[]> {
  const sandboxId = parseSandboxId(idText);
  const [place] = await placesOf(db, team.teamId, [sandboxId]);
  if (!place) throw sandboxNotFound(sandboxId);
  return nodes.get(place.nodeId).logs({ sandboxId, ...page });
}
