import type { Db } from './database.ts';
import { recordEvent } from './event-write.ts';

export type VolumeChange = { type: 'created' | 'deleted'; atUs: number };

/** Tells of a volume. Call it in the transaction that inserts or deletes the volume's row. */
export async function recordVolumeEvent(db: Db, volume: { teamId: string; volumeId: string; name: string }, change: VolumeChange): Promise<void> {
  await recordEvent(db, {
    teamId: volume.teamId,
    type: `volume.lifecycle.${change.type}`,
    subject: { kind: 'volume', id: volume.volumeId },
    atUs: change.atUs,
    data: { volume_id: volume.volumeId, name: volume.name },
  });
}
