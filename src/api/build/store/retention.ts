import { sql } from 'kysely';
import type { Db } from '../../database/db.ts';
import { inBatches } from '../../event/store/history.ts';

/** Ended builds to keep: the `newest`, unless they ended before `beforeUs`. */
type Kept = { beforeUs: number; newest: number };

/** At most `limit` builds that were registered before `beforeUs` and not started since. */
export async function neverStarted(db: Db, beforeUs: number, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('builds')
    .select('build_id')
    .where('status', '=', 'waiting')
    .where('created_at_us', '<', beforeUs)
    .limit(limit)
    .execute();
  return rows.map(row => row.build_id);
}

/** Removes a team's failed builds, with their logs and tags, except those to keep. */
export async function pruneFailedBuilds(db: Db, teamId: string, { beforeUs, newest }: Kept): Promise<void> {
  const ended = endedBuilds(db, teamId, ['error']);
  await inBatches(limit => removeBuilds(db, ended.where('finished_at_us', '<', beforeUs).limit(limit)));
  await inBatches(limit => removeBuilds(db, newestFirst(ended).offset(newest).limit(limit)));
}

/** Removes a team's oldest failed builds, at most `limit`. Answers how many. */
export async function removeOldestFailed(db: Db, teamId: string, limit: number): Promise<bigint> {
  return removeBuilds(db, endedBuilds(db, teamId, ['error']).orderBy('finished_at_us').limit(limit));
}

/**
 * Removes a team's superseded builds, snapshots included: ready ones that no tag selects and no sandbox was made from.
 * The `newest` of each template stay.
 */
export async function pruneSuperseded(db: Db, teamId: string, newest: number): Promise<void> {
  const templates = await db
    .selectFrom('builds')
    .innerJoin('templates', 'templates.template_id', 'builds.template_id')
    .select('builds.template_id')
    .where('team_id', '=', teamId)
    .where('status', '=', 'ready')
    .groupBy('builds.template_id')
    .having(({ fn }) => fn.countAll(), '>', newest)
    .execute();
  for (const { template_id: templateId } of templates)
    await inBatches(limit =>
      removeBuilds(
        db,
        superseded(db, templateId)
          .orderBy('created_at_us', 'desc')
          .orderBy('build_id', 'desc')
          .offset(newest)
          .limit(limit),
      ),
    );
}

function superseded(db: Db, templateId: string) {
  const assigned = db
    .selectFrom('build_tags')
    .innerJoin('builds as tagged', 'tagged.build_id', 'build_tags.build_id')
    .select([
      'build_tags.build_id',
      sql<number>`row_number() over (partition by tag order by assigned_at_us desc)`.as('place'),
    ])
    .where('build_tags.template_id', '=', templateId)
    .where('tagged.status', '=', 'ready');
  const selected = db.selectFrom(assigned.as('assigned')).select('assigned.build_id').where('place', '=', 1);
  const used = db.selectFrom('sandboxes').select('sandboxes.build_id').where('template_id', '=', templateId);
  return db
    .selectFrom('builds')
    .select('build_id')
    .where('template_id', '=', templateId)
    .where('status', '=', 'ready')
    .where('build_id', 'not in', selected)
    .where('build_id', 'not in', used);
}

/** Removes the logs of a team's ended builds, except those of the builds that `Kept` keeps. */
export async function pruneBuildLogs(db: Db, teamId: string, { beforeUs, newest }: Kept): Promise<void> {
  const logged = endedBuilds(db, teamId, ['ready', 'error']).where(({ exists, selectFrom }) =>
    exists(selectFrom('build_log').select('number').whereRef('build_log.build_id', '=', 'builds.build_id')),
  );
  const old = await logged.where('finished_at_us', '<', beforeUs).execute();
  const many = await newestFirst(logged).offset(newest).limit(logsLookedAt).execute();
  for (const { build_id: buildId } of [...old, ...many]) await removeLog(db, buildId);
}

/** Logs beyond the allowed number that one round removes: the next round takes the others. */
const logsLookedAt = 1_000;

async function removeLog(db: Db, buildId: string): Promise<void> {
  await inBatches(async limit => {
    const lines = db.selectFrom('build_log').select('number').where('build_id', '=', buildId).limit(limit);
    const removed = db.deleteFrom('build_log').where('build_id', '=', buildId).where('number', 'in', lines);
    return (await removed.executeTakeFirst()).numDeletedRows;
  });
}

function endedBuilds(db: Db, teamId: string, statuses: readonly ('ready' | 'error')[]) {
  return db
    .selectFrom('builds')
    .innerJoin('templates', 'templates.template_id', 'builds.template_id')
    .select('builds.build_id')
    .where('team_id', '=', teamId)
    .where('kind', '=', 'template')
    .where('status', 'in', statuses);
}

const newestFirst = (builds: ReturnType<typeof endedBuilds>) =>
  builds.orderBy('finished_at_us', 'desc').orderBy('builds.build_id', 'desc');

async function removeBuilds(db: Db, which: { execute(): Promise<{ build_id: string }[]> }): Promise<bigint> {
  const buildIds = (await which.execute()).map(row => row.build_id);
  if (buildIds.length === 0) return 0n;
  return (await db.deleteFrom('builds').where('build_id', 'in', buildIds).executeTakeFirst()).numDeletedRows;
}
