import type { TeamUse } from '../../../protocol/api/team.ts';
import { countKept } from '../../build/store/counts.ts';
import { openBuildCount } from '../../build/store/read.ts';
import type { Db } from '../../database/db.ts';
import { countSandboxes } from '../../sandbox/store/list/list.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { LimitsOf } from '../../team/rules/limits.ts';
import { listVolumes } from '../../volume/store/volumes.ts';

/** The limits that apply to a team, and how much of each is in use. */
export async function teamUse({ db, limitsOf }: { db: Db; limitsOf: LimitsOf }, team: TeamRecord): Promise<TeamUse> {
  const { teamId } = team;
  const [concurrentSandboxes, sandboxes, concurrentBuilds, kept, volumes] = await Promise.all([
    countSandboxes(db, { teamId, shown: ['running'], metadata: [] }),
    countSandboxes(db, { teamId, shown: ['running', 'paused'], metadata: [] }),
    openBuildCount(db, teamId),
    countKept(db, teamId),
    listVolumes(db, teamId),
  ]);
  return {
    limits: limitsOf(team),
    taken: { concurrentSandboxes, sandboxes, concurrentBuilds, ...kept, volumes: volumes.length },
  };
}
