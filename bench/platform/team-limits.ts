import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TeamLimits } from '../../src/api/team/record.ts';

/** Gives every team of a platform these limits, as an operator does. */
export async function limitTeams(
  { url, dataDir }: { url: string; dataDir: string },
  limits: Partial<TeamLimits>,
): Promise<void> {
  const token = readFileSync(join(dataDir, 'admin-token'), 'utf8').trim();
  const headers = { 'X-Admin-Token': token, 'Content-Type': 'application/json' };
  const teams = (await (await fetch(`${url}/admin/teams`, { headers })).json()) as { teamID: string }[];
  const body = JSON.stringify({ limits });
  for (const { teamID } of teams) {
    const answer = await fetch(`${url}/admin/teams/${teamID}`, { method: 'PATCH', headers, body });
    if (!answer.ok) throw new Error(`limits: ${answer.status} ${await answer.text()}`);
  }
}
