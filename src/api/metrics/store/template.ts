import { statesShownAs } from '../../../protocol/state.ts';
import type { Db } from '../../database/db.ts';
import { teamMetricSeconds } from './team.ts';
import type { TeamRange } from './team.ts';

const hourSeconds = 3_600;

/** Adds the sandboxes that run now to the hours of their templates, for the minute that began at `minuteSeconds`. */
export async function countTemplates(db: Db, minuteSeconds: number): Promise<void> {
  const hour = minuteSeconds - (minuteSeconds % hourSeconds);
  await db
    .insertInto('template_hours')
    .columns(['team_id', 'template_id', 'hour_seconds', 'counted_seconds', 'sandbox_minutes'])
    .expression(sandboxes =>
      sandboxes
        .selectFrom('sandboxes')
        .select(({ fn, lit }) => [
          'team_id',
          'template_id',
          lit(hour).as('hour_seconds'),
          lit(minuteSeconds).as('counted_seconds'),
          fn.countAll<number>().as('sandbox_minutes'),
        ])
        .where('state', 'in', statesShownAs('running'))
        .groupBy(['team_id', 'template_id']),
    )
    .onConflict(conflict =>
      conflict
        .columns(['team_id', 'hour_seconds', 'template_id'])
        .doUpdateSet(update => ({
          sandbox_minutes: update('template_hours.sandbox_minutes', '+', update.ref('excluded.sandbox_minutes')),
          counted_seconds: update.ref('excluded.counted_seconds'),
        }))
        .where('template_hours.counted_seconds', '<', minuteSeconds),
    )
    .execute();
}

/** How long sandboxes of a template ran. */
export type TemplateUse = { templateId: string; sandboxSeconds: number };

/** The `limit` templates whose sandboxes ran longest for a team, in the hours that overlap a range. */
export async function mostUsedTemplates(
  db: Db,
  teamId: string,
  { startSeconds, endSeconds }: TeamRange,
  limit: number,
): Promise<TemplateUse[]> {
  const rows = await db
    .selectFrom('template_hours')
    .select(({ fn }) => ['template_id', fn.sum<number>('sandbox_minutes').as('minutes')])
    .where('team_id', '=', teamId)
    .where('hour_seconds', '>', startSeconds - hourSeconds)
    .where('hour_seconds', '<=', endSeconds)
    .groupBy('template_id')
    .orderBy('minutes', 'desc')
    .orderBy('template_id')
    .limit(limit)
    .execute();
  return rows.map(row => ({ templateId: row.template_id, sandboxSeconds: Number(row.minutes) * teamMetricSeconds }));
}

/** Removes the hours that began before `beforeSeconds`. */
export async function pruneTemplateHours(db: Db, beforeSeconds: number): Promise<void> {
  await db.deleteFrom('template_hours').where('hour_seconds', '<', beforeSeconds).execute();
}
