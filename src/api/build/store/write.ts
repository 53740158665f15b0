import type { BuildStatus } from '../../../protocol/api/template.ts';
import { isNobodyElses } from '../../replica/store/replicas.ts';
import { recordBuildEvent } from './events.ts';
import { openBuildCount } from './read.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { lockTeam } from '../../team/store/lock.ts';
import { putTags } from '../../template/store/put-tags.ts';
import type { BuildConfig, BuildReason, BuildRecord, BuildRequest } from '../record.ts';

/** Characters of a failure's message in an event; the build's status has the full text. */
const reasonCharactersMax = 1000;

/** A build that is registered. */
type NewBuild = {
  buildId: string;
  templateId: string;
  tags: readonly string[];
  cpuCount: number;
  memoryMiB: number;
  diskMiB: number;
  request?: BuildRequest;
  nowUs: number;
};

/**
 * Takes over the log and outcome of a build that is under way. False where another process, alive at `nowUs`, has them.
 */
export async function claimBuild(db: Db, buildId: string, replica: { ownId: string; nowUs: number }): Promise<boolean> {
  const row = await db
    .updateTable('builds')
    .set({ replica_id: replica.ownId })
    .where('build_id', '=', buildId)
    .where(expressions => isNobodyElses(expressions, 'builds', replica))
    .returning('build_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Registers a build, `waiting`, with its tags, which select it once it is ready. */
export async function insertBuild(db: Db, build: NewBuild): Promise<void> {
  await inTransaction(db, db => insertBuildIn(db, build));
}

async function insertBuildIn(db: Db, build: NewBuild): Promise<void> {
  const { nowUs } = build;
  await db
    .insertInto('builds')
    .values({
      build_id: build.buildId,
      template_id: build.templateId,
      status: 'waiting',
      cpu_count: build.cpuCount,
      memory_mib: build.memoryMiB,
      disk_mib: build.diskMiB,
      agent_version: null,
      layers_json: '[]',
      config_json: JSON.stringify({ defaultUser: 'user', defaultWorkdir: '', buildEnv: {} } satisfies BuildConfig),
      reason_json: null,
      source_sandbox_id: null,
      request_json: build.request ? JSON.stringify(build.request) : null,
      created_at_us: nowUs,
      updated_at_us: nowUs,
      finished_at_us: null,
    })
    .execute();
  await putTags(db, build);
  await db
    .updateTable('templates')
    .set(update => ({ build_count: update('build_count', '+', 1), updated_at_us: nowUs }))
    .where('template_id', '=', build.templateId)
    .execute();
  await recordBuildEvent(db, build.buildId, { type: 'created', atUs: nowUs, data: { tags: build.tags } });
}

/** Moves a build from one state to the next. False when it is no longer in that state. */
export async function moveBuild(
  db: Db,
  buildId: string,
  from: BuildStatus,
  to: BuildStatus,
  nowUs: number,
): Promise<boolean> {
  return inTransaction(db, async db => {
    const { numUpdatedRows } = await db
      .updateTable('builds')
      .set({ status: to, updated_at_us: nowUs })
      .where('build_id', '=', buildId)
      .where('status', '=', from)
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return false;
    if (to === 'building') await recordBuildEvent(db, buildId, { type: 'started', atUs: nowUs });
    return true;
  });
}

/**
 * `waiting` → `building` by a process, unless the team has `concurrentMax` running builds, not counting `rivals`.
 * Counting and moving are one transaction: two starts at once can't both take the last place. Null when it does not
 * wait (any more). From then on the build belongs to that process: its node may take long to get what it needs, and no
 * other process should find that the node does not know the build.
 */
export async function beginBuild(
  db: Db,
  build: { buildId: string; teamId: string; replicaId: string },
  { concurrentMax, rivals, nowUs }: { concurrentMax: number; rivals: readonly string[]; nowUs: number },
): Promise<'begun' | 'full' | null> {
  return inTransaction(db, async db => {
    await lockTeam(db, build.teamId);
    if ((await openBuildCount(db, build.teamId, rivals)) >= concurrentMax) return 'full';
    if (!(await moveBuild(db, build.buildId, 'waiting', 'building', nowUs))) return null;
    await db.updateTable('builds').set({ replica_id: build.replicaId }).where('build_id', '=', build.buildId).execute();
    return 'begun';
  });
}

/** The result of a successful build. */
type BuildOutcome = Pick<BuildRecord, 'layers' | 'config' | 'agentVersion' | 'diskMiB'>;

/** Ends a running build: sandboxes can be made from it. False when it has ended otherwise. */
export async function publishBuild(db: Db, buildId: string, outcome: BuildOutcome, nowUs: number): Promise<boolean> {
  return inTransaction(db, async db => {
    const { numUpdatedRows } = await db
      .updateTable('builds')
      .set({
        status: 'ready',
        layers_json: JSON.stringify(outcome.layers),
        config_json: JSON.stringify(outcome.config),
        agent_version: outcome.agentVersion,
        disk_mib: outcome.diskMiB,
        request_json: null,
        sealed_plan: null,
        updated_at_us: nowUs,
        finished_at_us: nowUs,
      })
      .where('build_id', '=', buildId)
      .where('status', '=', 'building')
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return false;
    await recordBuildEvent(db, buildId, { type: 'ready', atUs: nowUs });
    return true;
  });
}

/** Ends builds that wait or run, with the reason. */
export async function failBuilds(
  db: Db,
  buildIds: readonly string[],
  reason: BuildReason,
  nowUs: number,
): Promise<void> {
  if (buildIds.length === 0) return;
  await inTransaction(db, async db => {
    const failed = await db
      .updateTable('builds')
      .set({
        status: 'error',
        reason_json: JSON.stringify(reason),
        // The row stays, but nobody starts the build any more, and its Dockerfile may be a megabyte.
        request_json: null,
        sealed_plan: null,
        updated_at_us: nowUs,
        finished_at_us: nowUs,
      })
      .where('build_id', 'in', buildIds)
      .where('status', 'in', ['waiting', 'building'])
      .returning('build_id')
      .execute();
    const data = {
      reason: reason.message.slice(0, reasonCharactersMax),
      ...(reason.step !== undefined && { step: reason.step }),
    };
    for (const { build_id } of failed) await recordBuildEvent(db, build_id, { type: 'failed', atUs: nowUs, data });
  });
}
