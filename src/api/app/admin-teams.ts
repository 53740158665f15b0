import { AtollError } from '../../base/error.ts';
import { listTeams, updateTeam } from '../store/team.ts';
import type { TeamLimits, TeamRecord } from '../store/team.ts';
import type { App } from './context.ts';

/** Every team, the oldest first. */
export async function listAllTeams(app: App): Promise<TeamRecord[]> {
  return listTeams(app.store.db);
}

export type TeamChange = { name?: string; limits?: { [limit in keyof TeamLimits]?: TeamLimits[limit] | null }; banned?: boolean; blocked?: boolean };

/** Changes what is named of a team; a limit that is null is the installation's again. Holds from the next request on. Throws `not_found`. */
export async function changeTeam(app: App, team: TeamRecord, change: TeamChange): Promise<TeamRecord> {
  const changed = await updateTeam(app.store.db, team.teamId, change);
  app.credentials.clear();
  if (!changed) throw new AtollError('not_found', `Team "${team.teamId}" was not found`);
  return changed;
}
