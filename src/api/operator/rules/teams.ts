import { AtollError } from '../../../base/error.ts';
import { listTeams, updateTeam } from '../../team/store/team.ts';
import type { TeamLimits, TeamRecord } from '../../team/record.ts';
import type { Durability } from '../../../protocol/durability.ts';
import type { Db } from '../../database/db.ts';
import type { CredentialCache } from '../../credential/rules/cache.ts';

/** Every team, the oldest first. */
export async function listAllTeams(db: Db): Promise<TeamRecord[]> {
  return listTeams(db);
}

/** The changes to a team; the rest stays. */
type TeamChange = {
  name?: string;
  limits?: { [limit in keyof TeamLimits]?: TeamLimits[limit] | null };
  banned?: boolean;
  blocked?: boolean;
  pauseDurability?: Durability;
};

/**
 * Changes the named members of a team; a limit of null becomes the installation's again. Applies from the next request
 * on. Throws `not_found`.
 */
export async function changeTeam(
  { credentials, db }: { credentials: CredentialCache; db: Db },
  team: TeamRecord,
  change: TeamChange,
): Promise<TeamRecord> {
  const changed = await updateTeam(db, team.teamId, change);
  credentials.clear();
  if (!changed) throw new AtollError('not_found', `Team "${team.teamId}" was not found`);
  return changed;
}
