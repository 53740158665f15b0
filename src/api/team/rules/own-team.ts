import { AtollError } from '../../../base/error.ts';
import type { TeamRecord } from '../record.ts';

/** Some deprecated requests name the team in addition to its credential: it must be the same. Throws `invalid`. */
export function requireOwnTeam(team: TeamRecord, named: string | undefined): void {
  if (named !== undefined && named !== team.teamId)
    throw new AtollError('invalid', 'teamID: is not the team of the credential');
}
