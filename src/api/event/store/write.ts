import { sql, type CompiledQuery } from 'kysely';
import { assert } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { formatTime } from '../../../base/time.ts';
import { eventBounds } from '../../../protocol/api/event.ts';
import type { EventSubject, EventType, LifecycleEvent } from '../../../protocol/api/event.ts';
import type { Db } from '../../database/db.ts';
import { prepared, together } from '../../database/prepared.ts';

/** An event to record. */
export type NewEvent = {
  teamId: string;
  type: EventType;
  subject: { kind: EventSubject; id: string };
  atUs: number;
  data: Record<string, unknown> | null;
  /** Further members of the event, for the clients that know them. */
  members?: Partial<LifecycleEvent>;
};

/** E2B's names for the changes before the types had their present names. */
const labels: Partial<Record<string, string>> = {
  created: 'create',
  updated: 'update',
  paused: 'pause',
  resumed: 'resume',
  killed: 'kill',
  checkpointed: 'checkpoint',
};

/**
 * Records an event, and to which of the team's webhooks it must be delivered. `db` must be the transaction of the
 * change that it reports: then neither is there without the other, and events of one subject are numbered in order.
 * `behind`: other changes to make in the same trip to the database.
 */
export async function recordEvent(db: Db, event: NewEvent, behind: readonly CompiledQuery[] = []): Promise<void> {
  const { teamId, type, subject, atUs } = event;
  const eventId = newUuid();
  const insert = insertEvent.queryOf(db, {
    eventId,
    teamId,
    type,
    subjectKind: subject.kind,
    subjectId: subject.id,
    atUs,
    bodyJson: bodyOf(eventId, event),
  });
  const [[inserted]] = await together(db, [insert, ...behind]);
  assert(inserted, 'an event that is inserted has a sequence');
  const { sequence, webhook } = inserted;
  // Most teams have none, and asking would be one more trip to the database in each change.
  if (webhook === null) return;
  await deliver(db, { sequence, subject: `${subject.kind}:${subject.id}`, atUs, teamId, types: `%,${type},%` });
}

const insertEvent = prepared<
  {
    eventId: string;
    teamId: string;
    type: EventType;
    subjectKind: EventSubject;
    subjectId: string;
    atUs: number;
    bodyJson: string;
  },
  { sequence: number; webhook: string | null }
>((db, parameter) =>
  db
    .insertInto('events')
    .values({
      event_id: parameter('eventId'),
      team_id: parameter('teamId'),
      type: parameter('type'),
      subject_kind: parameter('subjectKind'),
      subject_id: parameter('subjectId'),
      at_us: parameter('atUs'),
      body_json: parameter('bodyJson'),
    })
    .returning(row => [
      'sequence',
      row.selectFrom('webhooks').select('webhook_id').where('team_id', '=', parameter('teamId')).limit(1).as('webhook'),
    ]),
);

const deliver = prepared<{ sequence: number; subject: string; atUs: number; teamId: string; types: string }>(
  (db, parameter) =>
    db
      .insertInto('webhook_deliveries')
      .columns(['webhook_id', 'sequence', 'subject', 'state', 'claimed', 'attempts', 'due_at_us'])
      .expression(
        db
          .selectFrom('webhooks')
          .select([
            'webhook_id',
            sql<number>`cast(${parameter('sequence')} as bigint)`.as('sequence'),
            sql<string>`cast(${parameter('subject')} as text)`.as('subject'),
            sql<'pending'>`'pending'`.as('state'),
            sql<0>`0`.as('claimed'),
            sql<number>`0`.as('attempts'),
            sql<number>`cast(${parameter('atUs')} as bigint)`.as('due_at_us'),
          ])
          .where('team_id', '=', parameter('teamId'))
          .where('enabled', '=', 1)
          .where('types_text', 'like', parameter('types')),
      ),
);

/** What happened to a volume. `atUs`: microseconds since the epoch. */
type VolumeChange = { type: 'created' | 'deleted'; atUs: number };

/** Writes an event of a volume. Call it in the transaction that inserts or deletes the volume's row. */
export async function recordVolumeEvent(
  db: Db,
  volume: { teamId: string; volumeId: string; name: string },
  change: VolumeChange,
): Promise<void> {
  await recordEvent(db, {
    teamId: volume.teamId,
    type: `volume.lifecycle.${change.type}`,
    subject: { kind: 'volume', id: volume.volumeId },
    atUs: change.atUs,
    data: { volume_id: volume.volumeId, name: volume.name },
  });
}

function bodyOf(eventId: string, event: NewEvent): string {
  const { teamId, type, subject, atUs, data, members } = event;
  const text = (eventData: Record<string, unknown> | null) => {
    const change = type.split('.').at(-1) ?? '';
    const body: LifecycleEvent = {
      version: 'v2',
      id: eventId,
      type,
      timestamp: formatTime(atUs),
      eventData,
      event_data: eventData,
      event_category: 'lifecycle',
      event_label: labels[change] ?? change,
      ...members,
      teamId,
      subject,
    };
    return JSON.stringify(body);
  };
  const whole = text(data);
  if (Buffer.byteLength(whole) <= eventBounds.bodyBytesMax || data === null) return whole;
  const { sandbox_metadata: _, ...rest } = data;
  return text({ ...rest, sandbox_metadata_omitted: true });
}
