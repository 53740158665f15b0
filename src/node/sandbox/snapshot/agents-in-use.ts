import { join } from 'node:path';
import { agentAt } from '../../agent-client/copy.ts';
import type { Layout } from '../../layout.ts';
import { readManifestIfWhole } from '../../snapshot/manifest.ts';
import type { Sandboxes } from '../state/sandboxes.ts';
import { listSnapshots, type SnapshotFacts } from './snapshot-store.ts';

/** The copies of the agent that sandboxes run from, or will again when they continue from their memory. */
export function agentsInUse(sandboxes: Sandboxes, layout: Pick<Layout, 'snapshots' | 'agents'>): string[] {
  const snapshots = listSnapshots(layout).flatMap(({ snapshotId }) => {
    const manifest = readManifestIfWhole(join(layout.snapshots, snapshotId));
    // Only takeSnapshot writes them.
    return manifest ? [agentAt(layout.agents, (manifest.facts as SnapshotFacts).agentDir)] : [];
  });
  return [...sandboxes.records().map(({ agentDir }) => agentDir), ...snapshots];
}
