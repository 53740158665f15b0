import type { ReadSandboxLogs, SandboxLogEntry } from '../../protocol/logs.ts';
import { placesOf } from '../store/past-sandbox.ts';
import type { TeamRecord } from '../store/team.ts';
import type { App } from './context.ts';
import { parseSandboxId, sandboxNotFound } from './sandbox-find.ts';

/** What happened in a sandbox of the team, also when it is no more. Throws `not_found`, `invalid` for a text that is no ID. */
export async function readSandboxLogs(app: App, team: TeamRecord, idText: string, page: Omit<ReadSandboxLogs, 'sandboxId'>): Promise<SandboxLogEntry[]> {
  const sandboxId = parseSandboxId(idText);
  const [place] = await placesOf(app.store.db, team.teamId, [sandboxId]);
  if (!place) throw sandboxNotFound(sandboxId);
  return app.nodes.get(place.nodeId).logs({ sandboxId, ...page });
}
