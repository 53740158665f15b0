import { sql } from 'kysely';
import type { Expression, ExpressionBuilder } from 'kysely';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { prepared } from '../../database/prepared.ts';
import type { Tables } from '../../database/schema.ts';

/** An api process: its ID is new at each start, its name is the same for the same place. */
type ReplicaRow = { replicaId: string; name: string };

/** Registers a replica, alive until `untilUs`. An earlier process of the same name is over: this one replaces it. */
export async function enterReplica(db: Db, { replicaId, name }: ReplicaRow, untilUs: number): Promise<void> {
  await inTransaction(db, async db => {
    await db.deleteFrom('replicas').where('name', '=', name).execute();
    await db.insertInto('replicas').values({ replica_id: replicaId, name, until_us: untilUs }).execute();
  });
}

/** Records that a replica is alive until `untilUs`, even where it was given up meanwhile. */
export async function keepReplica(db: Db, { replicaId, name }: ReplicaRow, untilUs: number): Promise<void> {
  await keep(db, { replicaId, name, untilUs });
}

const keep = prepared<ReplicaRow & { untilUs: number }>((db, parameter) =>
  db
    .insertInto('replicas')
    .values({ replica_id: parameter('replicaId'), name: parameter('name'), until_us: parameter('untilUs') })
    .onConflict(conflict => conflict.column('replica_id').doUpdateSet({ until_us: parameter('untilUs') })),
);

/** Removes a replica: from here on any process may take over its work. */
export async function leaveReplica(db: Db, replicaId: string): Promise<void> {
  await db.deleteFrom('replicas').where('replica_id', '=', replicaId).execute();
}

/** Forgets replicas that ended before `beforeUs`. */
export async function pruneReplicas(db: Db, beforeUs: number): Promise<void> {
  await prune(db, { beforeUs });
}

const prune = prepared<{ beforeUs: number }>((db, parameter) =>
  db.deleteFrom('replicas').where('until_us', '<', parameter('beforeUs')),
);

/**
 * Condition on rows with a `replica_id`: no other process works on it, because no other replica is named there or that
 * one is over by `nowUs`.
 */
export function isNobodyElses<Table extends 'sandboxes' | 'builds' | 'blobs' | 'volumes'>(
  expressions: ExpressionBuilder<Tables, Table>,
  table: Table,
  { ownId, nowUs }: { ownId: string | Expression<string>; nowUs: number | Expression<number> },
) {
  const owner = sql.ref<string | null>(`${table}.replica_id`);
  const alive = expressions
    .selectFrom('replicas' as never)
    .select(sql<number>`1`.as('one'))
    .where(sql<boolean>`replicas.replica_id = ${owner} and replicas.until_us > ${nowUs}`);
  return expressions.or([
    sql<boolean>`${owner} is null`,
    sql<boolean>`${owner} = ${ownId}`,
    expressions.not(expressions.exists(alive)),
  ]);
}
