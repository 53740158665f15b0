import { hostname } from 'node:os';
import { microsPerSecond } from '../../../base/clock.ts';
import type { Clock } from '../../../base/clock.ts';
import { newUuid } from '../../../base/id.ts';
import { kindOf } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { enterReplica, keepReplica, leaveReplica, pruneReplicas } from '../store/replicas.ts';

/** How long a replica counts as alive after its last report, seconds. */
const defaultLeaseSeconds = 15;
/** Reports within that time. */
const beatsPerLease = 3;
/** A replica that ended this long ago is forgotten, seconds. */
const forgottenAfterSeconds = 24 * 3600;

/**
 * This process among those that share the database. What a process works on carries its ID; another may finish it only
 * when this one has not reported for `leaseSeconds`.
 */
export type Replica = {
  readonly replicaId: string;
  /** How often to call `beat`, ms. */
  readonly beatIntervalMs: number;
  /** Reports that it is alive. */
  beat(): Promise<void>;
  /** Gives up everything at once. Do not use it afterwards. */
  leave(): Promise<void>;
};

/** Without a shared database, the process counts as alive as long as it runs. */
const foreverUs = Number.MAX_SAFE_INTEGER;

/** Registers this process. `place`: where it runs on this machine, which identifies a later start of it. */
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
