import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { findTeam, insertTeam } from '../store/team.ts';
import type { TeamLimits, TeamRecord } from '../record.ts';
import type { Db } from '../../database/db.ts';
import type { Clock } from '../../../base/clock.ts';
import type { CredentialCache } from '../../credential/rules/cache.ts';

/** What accounts need: the command line has no more of the platform. */
export type Accounts = { clock: Clock; credentials: CredentialCache; db: Db };

const slugPattern = /^[a-z0-9_-]{1,64}$/;

/** Makes a team. Its slug is the namespace of its templates. Throws `invalid` or `conflict`. */
export async function createTeam(
  { clock, db }: { clock: Clock; db: Db },
  team: { name: string; slug: string; limits?: Partial<TeamLimits> },
): Promise<TeamRecord> {
  if (!slugPattern.test(team.slug))
    throw new AtollError('invalid', 'slug: must be 1 to 64 of lowercase letters, digits, "-" and "_"');
  const taken = () => new AtollError('conflict', `slug: "${team.slug}" is taken`);
  if (await findTeam(db, { slug: team.slug })) throw taken();
  const record: TeamRecord = {
    teamId: newUuid(),
    name: team.name,
    slug: team.slug,
    limits: team.limits ?? {},
    banned: false,
    blocked: false,
    pauseDurability: 'node',
    createdAtUs: clock(),
  };
  if (!(await insertTeam(db, record))) throw taken();
  return record;
}
