import type { Db } from '../../database/db.ts';

/** What a team has: templates, their builds, and snapshots. */
type Kept = { templates: number; builds: number; snapshots: number };

/** How many templates, builds and snapshots a team has. */
export async function countKept(db: Db, teamId: string): Promise<Kept> {
  const [templates, builds, snapshots] = await Promise.all([
    countTemplates(db, teamId),
    countBuilds(db, teamId, 'template'),
    countBuilds(db, teamId, 'snapshot'),
  ]);
  return { templates, builds, snapshots };
}

/** How many templates a team has, snapshots not counted. */
export async function countTemplates(db: Db, teamId: string): Promise<number> {
  const { count } = await db
    .selectFrom('templates')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('team_id', '=', teamId)
    .where('kind', '=', 'template')
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** How many builds in any state a team's templates have, or how many snapshots it has: those are builds as well. */
export async function countBuilds(db: Db, teamId: string, kind: 'template' | 'snapshot'): Promise<number> {
  const { count } = await buildsOfTeam(db, teamId, kind)
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** How many builds of a team are registered but not started. */
export async function countWaiting(db: Db, teamId: string): Promise<number> {
  const { count } = await buildsOfTeam(db, teamId, 'template')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('status', '=', 'waiting')
    .executeTakeFirstOrThrow();
  return Number(count);
}

function buildsOfTeam(db: Db, teamId: string, kind: 'template' | 'snapshot') {
  return db
    .selectFrom('builds')
    .innerJoin('templates', 'templates.template_id', 'builds.template_id')
    .where('team_id', '=', teamId)
    .where('kind', '=', kind);
}
