import { occupyingStates } from '../../protocol/state.ts';
import type { Db } from '../database/db.ts';

/** What a sandbox's metadata demands of its machine. */
export type Demands = {
  /** Labels that the machine must have (`ATOLL_NODE_LABELS`). */
  labels: Readonly<Record<string, string>>;
  /** It must not be where another sandbox of the team has the same pair of metadata; null: it may be anywhere. */
  apart: { teamId: string; value: string; /** Of the pair, in `sandbox_labels`. */ pairDigest: string } | null;
};

/** Demands of a sandbox that goes wherever there is room. */
export const noDemands: Demands = { labels: {}, apart: null };

/** Whether a machine has the demanded labels. */
export function hasLabels(demands: Demands, labels: Readonly<Record<string, string>> | undefined): boolean {
  return Object.entries(demands.labels).every(([name, value]) => labels?.[name] === value);
}

/** The machines that a sandbox must stay away from, because another one is there, or is being moved there. */
export async function machinesApart(db: Db, { apart }: Demands, exceptId?: string): Promise<Set<string>> {
  if (!apart) return new Set();
  let query = db
    .selectFrom('sandbox_labels')
    .innerJoin('sandboxes', 'sandboxes.sandbox_id', 'sandbox_labels.sandbox_id')
    .select(['sandboxes.node_id', 'sandboxes.next_node_id'])
    .where('sandbox_labels.pair_digest', '=', apart.pairDigest)
    .where('sandboxes.team_id', '=', apart.teamId)
    .where('sandboxes.state', 'in', occupyingStates);
  if (exceptId !== undefined) query = query.where('sandboxes.sandbox_id', '!=', exceptId);
  const rows = await query.execute();
  return new Set(rows.flatMap(row => (row.next_node_id === null ? [row.node_id] : [row.node_id, row.next_node_id])));
}

/** The demands in words; empty where there are none. */
export function demandsText({ labels, apart }: Demands): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return [
    ...(pairs.length > 0 ? [`the labels ${pairs.join(', ')}`] : []),
    ...(apart ? [`no other sandbox with ${apartKey}=${apart.value}`] : []),
  ].join(' and ');
}

/** The key of metadata that keeps sandboxes apart. */
export const apartKey = 'atoll.apart';
