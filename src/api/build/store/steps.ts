import type { MadeStep, StepOutcome } from '../../../protocol/build.ts';
import type { Db } from '../../database/db.ts';

/** Rows of one statement: both databases limit the number of its parameters. */
const rowsPerInsert = 200;

/** A step of a team's builds. */
type StepRef = { teamId: string; key: string };

/** The outcome of a step that some machine has carried out; this marks it as used. Null where no machine has. */
export async function findStep(db: Db, { teamId, key }: StepRef, nowUs: number): Promise<StepOutcome | null> {
  const row = await db
    .updateTable('build_steps')
    .set({ used_at_us: nowUs })
    .where('team_id', '=', teamId)
    .where('step_key', '=', key)
    .returning('layer')
    .executeTakeFirst();
  return row ?? null;
}

/** Records steps that a machine has carried out; these replace earlier outcomes. */
export async function putSteps(db: Db, teamId: string, steps: readonly MadeStep[], nowUs: number): Promise<void> {
  const known = new Map(steps.map(step => [step.key, step]));
  const rows = [...known.values()].map(({ key, layer }) => ({
    team_id: teamId,
    step_key: key,
    layer,
    used_at_us: nowUs,
  }));
  for (let start = 0; start < rows.length; start += rowsPerInsert)
    await db
      .insertInto('build_steps')
      .values(rows.slice(start, start + rowsPerInsert))
      .onConflict(conflict =>
        conflict
          .columns(['team_id', 'step_key'])
          .doUpdateSet(update => ({ layer: update.ref('excluded.layer'), used_at_us: nowUs })),
      )
      .execute();
}

/** Forgets a step whose layer is nowhere to be found. */
export async function forgetStep(db: Db, { teamId, key }: StepRef): Promise<void> {
  await db.deleteFrom('build_steps').where('team_id', '=', teamId).where('step_key', '=', key).execute();
}

/** Forgets steps that nobody has used since `beforeUs`. */
export async function pruneSteps(db: Db, beforeUs: number): Promise<void> {
  await db.deleteFrom('build_steps').where('used_at_us', '<', beforeUs).execute();
}
