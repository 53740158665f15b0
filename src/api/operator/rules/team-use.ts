import type { TeamUse } from '../../../protocol/api/team.ts';
import { openBuildCount } from '../../build/store/read.ts';
import type { Db } from '../../database/db.ts';
import { countSandboxes } from '../../sandbox/store/list.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { LimitsOf } from '../../team/rules/limits.ts';
import { listVolumes } from '../../volume/store/volumes.ts';

/** The limits that hold for a team, and what of them is taken. */
export async function teamUse({ db, limitsOf }: { db: Db; limitsOf: LimitsOf }, team: TeamRecord): Promise<TeamUse> {
  const { teamId } = team;
  const [concurrentSandboxes, concurrentBuilds, volumes] = await Promise.all([
    countSandboxes(db, { teamId, shown: ['running'], metadata: [] }),
    openBuildCount(db, teamId),
    listVolumes(db, teamId),
  ]);
  return { limits: limitsOf(team), taken: { concurrentSandboxes, concurrentBuilds, volumes: volumes.length } };
}
