import { join } from 'node:path';
import type { NodeContext } from '../context.ts';
import { readManifest } from '../snapshot/manifest.ts';
import { listSnapshots, type SnapshotFacts } from './snapshot.ts';

/** The copies of the agent that processes of sandboxes run from, or will again when they go on from their memory. */
export function agentsInUse(node: NodeContext): string[] {
  const sandboxes = [...node.running.values(), ...node.paused.values(), ...node.unreadable.values()].flatMap(({ record }) => record?.agentDir ?? []);
  // Only takeSnapshot writes them.
  const snapshots = listSnapshots(node).map(({ snapshotId }) => (readManifest(join(node.layout.snapshots, snapshotId)).facts as SnapshotFacts).agentDir);
  return [...sandboxes, ...snapshots];
}
