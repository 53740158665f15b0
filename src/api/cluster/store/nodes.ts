import { type Selectable, sql } from 'kysely';
import type { NodeInfo } from '../../../protocol/node.ts';
import type { ClusterTables } from '../../database/cluster-schema.ts';
import type { Db } from '../../database/db.ts';
import { prepared } from '../../database/prepared.ts';
import type { ClusterNode } from '../record.ts';

type Row = Selectable<ClusterTables['cluster_nodes']>;

const columns = [
  ...(['node_id', 'address', 'certificates_json', 'renew_at_us', 'joined_at_us'] as const),
  ...(['lease_until_us', 'given_up', 'boot_id', 'info_json'] as const),
];

/** The machines that have joined, ordered by ID. */
export async function listClusterNodes(db: Db): Promise<ClusterNode[]> {
  return (await all(db, {})).map(nodeOfRow);
}

const all = prepared<object, Row>(db => db.selectFrom('cluster_nodes').select(columns).orderBy('node_id'));

/** The certificates that a machine may show, by their digests, when it gets the next one, and where it serves. */
type Certified = Pick<ClusterNode, 'address' | 'certificates' | 'leaseUntilUs' | 'renewAtUs'>;

/** What the machine with this ID may show; null where none has joined. */
export async function certifiedNode(db: Db, nodeId: string): Promise<Certified | null> {
  const row = await db
    .selectFrom('cluster_nodes')
    .select(['address', 'certificates_json', 'lease_until_us', 'renew_at_us'])
    .where('node_id', '=', nodeId)
    .executeTakeFirst();
  if (!row) return null;
  return {
    address: row.address,
    certificates: JSON.parse(row.certificates_json) as string[],
    leaseUntilUs: row.lease_until_us,
    renewAtUs: row.renew_at_us,
  };
}

/**
 * Adds a machine. One that had joined before keeps its sandboxes and gets another certificate and address, provided
 * that it is there with the certificates `before`. False where that is not so (any more): another machine has joined
 * meanwhile.
 */
export async function putClusterNode(
  db: Db,
  node: Pick<ClusterNode, 'nodeId' | 'address' | 'certificates' | 'renewAtUs' | 'joinedAtUs'>,
  before: readonly string[] | null,
): Promise<boolean> {
  const known = {
    address: node.address,
    certificates_json: JSON.stringify(node.certificates),
    renew_at_us: node.renewAtUs,
    joined_at_us: node.joinedAtUs,
  };
  const row = before
    ? await db
        .updateTable('cluster_nodes')
        .set(known)
        .where('node_id', '=', node.nodeId)
        .where('certificates_json', '=', JSON.stringify(before))
        .returning('node_id')
        .executeTakeFirst()
    : await db
        .insertInto('cluster_nodes')
        .values({ node_id: node.nodeId, ...known, lease_until_us: null, given_up: 0, boot_id: null, info_json: null })
        .onConflict(conflict => conflict.column('node_id').doNothing())
        .returning('node_id')
        .executeTakeFirst();
  return row !== undefined;
}

/** Whether a machine was given up, or taken out of the cluster. */
export async function isNodeLost(db: Db, nodeId: string): Promise<boolean> {
  const row = await db.selectFrom('cluster_nodes').select('given_up').where('node_id', '=', nodeId).executeTakeFirst();
  return row?.given_up !== 0;
}

/** Forgets a machine: from now on no process talks to it. */
export async function deleteClusterNode(db: Db, nodeId: string): Promise<void> {
  await db.deleteFrom('cluster_nodes').where('node_id', '=', nodeId).execute();
  await db.deleteFrom('nodes').where('node_id', '=', nodeId).execute();
}

/** Sets the certificates that a machine may show, unless they have changed since they were read. */
export async function putCertificates(
  db: Db,
  node: Pick<ClusterNode, 'nodeId' | 'certificates'>,
  next: Pick<ClusterNode, 'certificates' | 'renewAtUs'>,
): Promise<boolean> {
  const row = await db
    .updateTable('cluster_nodes')
    .set({ certificates_json: JSON.stringify(next.certificates), renew_at_us: next.renewAtUs })
    .where('node_id', '=', node.nodeId)
    .where('certificates_json', '=', JSON.stringify(node.certificates))
    .returning('node_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** A lease to give: until when, by the database's clock. */
type NewLease = { nodeId: string; untilUs: number };

/**
 * Records longer leases before they are given, and answers for which machines: one that was given up or forgotten
 * meanwhile gets none.
 */
export async function keepLeases(db: Db, leases: readonly NewLease[]): Promise<Set<string>> {
  if (leases.length === 0) return new Set();
  const rows = await keep(db, {
    nodeIds: leases.map(({ nodeId }) => nodeId),
    untilUs: leases.map(({ untilUs }) => untilUs),
  });
  return new Set(rows.map(row => row.node_id));
}

const keep = prepared<{ nodeIds: string[]; untilUs: number[] }, { node_id: string }>((_db, parameter) => {
  const untilUs = parameter.each('untilUs');
  const wanted = parameter
    .each('nodeIds')
    .map((id, index) => sql`(cast(${id} as text), cast(${untilUs[index]} as bigint))`);
  return sql<{ node_id: string }>`
    with wanted (id, until_us) as (values ${sql.join(wanted)})
    update cluster_nodes
    set lease_until_us = case when lease_until_us > wanted.until_us then lease_until_us else wanted.until_us end
    from wanted where node_id = wanted.id and given_up = 0
    returning node_id`;
});

/** Records what a machine reports about itself. */
export async function putNodeFacts(
  db: Db,
  nodeId: string,
  { bootId, info }: { bootId: string; info: NodeInfo },
): Promise<void> {
  await putFacts(db, { nodeId, bootId, info: JSON.stringify(info) });
}

const putFacts = prepared<{ nodeId: string; bootId: string; info: string }>((db, parameter) =>
  db
    .updateTable('cluster_nodes')
    .set({ boot_id: parameter('bootId'), info_json: parameter('info') })
    .where('node_id', '=', parameter('nodeId')),
);

/**
 * Gives up the machines whose leases ended before `beforeUs`, and answers which: only one process gives up a machine.
 */
export async function giveUpNodes(db: Db, beforeUs: number): Promise<string[]> {
  return (await giveUp(db, { beforeUs })).map(row => row.node_id);
}

const giveUp = prepared<{ beforeUs: number }, { node_id: string }>((db, parameter) =>
  db
    .updateTable('cluster_nodes')
    .set({ given_up: 1 })
    .where('given_up', '=', 0)
    .where('lease_until_us', '<', parameter('beforeUs'))
    .returning('node_id'),
);

/** Gives up one machine: no work comes to it any more. */
export async function giveUpNode(db: Db, nodeId: string): Promise<void> {
  await db.updateTable('cluster_nodes').set({ given_up: 1 }).where('node_id', '=', nodeId).execute();
}

/** Reads a machine and locks its row until the transaction ends; null where none has joined. */
export async function lockClusterNode(db: Db, nodeId: string): Promise<ClusterNode | null> {
  const query = db.selectFrom('cluster_nodes').selectAll().where('node_id', '=', nodeId);
  const row = await query.forUpdate().executeTakeFirst();
  return row ? nodeOfRow(row) : null;
}

/** Reads a given-up machine and locks its row until the transaction ends; null for any other. */
export async function lockGivenUp(db: Db, nodeId: string): Promise<ClusterNode | null> {
  const node = await lockClusterNode(db, nodeId);
  return node?.isGivenUp ? node : null;
}

/** Takes back a machine that has paused what ran there. With its last lease it would be given up again at once. */
export async function takeNodeBack(db: Db, nodeId: string): Promise<void> {
  await db
    .updateTable('cluster_nodes')
    .set({ given_up: 0, lease_until_us: null })
    .where('node_id', '=', nodeId)
    .where('given_up', '=', 1)
    .execute();
}

function nodeOfRow(row: Row): ClusterNode {
  return {
    nodeId: row.node_id,
    address: row.address,
    certificates: JSON.parse(row.certificates_json) as string[],
    renewAtUs: row.renew_at_us,
    joinedAtUs: row.joined_at_us,
    leaseUntilUs: row.lease_until_us,
    isGivenUp: row.given_up === 1,
    bootId: row.boot_id,
    info: row.info_json === null ? null : (JSON.parse(row.info_json) as NodeInfo),
  };
}
