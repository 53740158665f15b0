import { hostname } from 'node:os';
import { microsPerSecond } from '../../../base/clock.ts';
import type { Clock } from '../../../base/clock.ts';
import { newUuid } from '../../../base/id.ts';
import { kindOf } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { enterReplica, keepReplica, leaveReplica, pruneReplicas } from '../store/replicas.ts';

/** For how long a replica counts as alive after it last said so, seconds. */
const defaultLeaseSeconds = 15;
/** How often it says so within that time. */
const beatsPerLease = 3;
/** A replica that has been over for so long is forgotten, seconds. */
const forgottenAfterSeconds = 24 * 3600;

/**
 * This process among those that share the database. What one works on carries its ID, and is another's to finish only
 * when this one has not said for `leaseSeconds` that it is alive.
 */
export type Replica = {
  readonly replicaId: string;
  /** How often `beat` is to be called, ms. */
  readonly beatIntervalMs: number;
  /** Says that it is alive. */
  beat(): Promise<void>;
  /** Gives up everything at once. Not to be used afterwards. */
  leave(): Promise<void>;
};

/** Nobody shares a database of its own: its process is alive as long as it runs. */
const foreverUs = Number.MAX_SAFE_INTEGER;

/** Enters this process. `place`: where it runs on this machine, by which a later start of it is known. */
export async function startReplica(
  { db, clock }: { db: Db; clock: Clock },
  { place, leaseSeconds = defaultLeaseSeconds }: { place: string; leaseSeconds?: number },
): Promise<Replica> {
  const row = { replicaId: newUuid(), name: `${hostname()}:${place}` };
  const isShared = kindOf(db) === 'postgres';
  const untilUs = () => (isShared ? clock() + leaseSeconds * microsPerSecond : foreverUs);
  if (!isShared) await pruneReplicas(db, foreverUs + 1);
  await enterReplica(db, row, untilUs());
  return {
    replicaId: row.replicaId,
    beatIntervalMs: (leaseSeconds * 1000) / beatsPerLease,
    async beat() {
      if (!isShared) return;
      await keepReplica(db, row, untilUs());
      await pruneReplicas(db, clock() - forgottenAfterSeconds * microsPerSecond);
    },
    leave: () => leaveReplica(db, row.replicaId),
  };
}
