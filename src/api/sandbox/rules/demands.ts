import { apartKey, type Demands } from '../../placement/demands.ts';
import type { SandboxRecord } from '../record.ts';
import { pairDigest } from '../store/labels.ts';

/** The rest of the key names a label of machines. */
const labelKeyStart = 'atoll.node.';

/** What the metadata of a team's sandbox demands of its machine. */
export function demandsOf({ teamId, metadata }: Pick<SandboxRecord, 'teamId' | 'metadata'>): Demands {
  const labels = Object.entries(metadata ?? {})
    .filter(([key]) => key.startsWith(labelKeyStart))
    .map(([key, value]) => [key.slice(labelKeyStart.length), value]);
  const value = metadata?.[apartKey];
  return {
    labels: Object.fromEntries(labels) as Record<string, string>,
    apart: value === undefined ? null : { teamId, value, pairDigest: pairDigest(apartKey, value) },
  };
}
