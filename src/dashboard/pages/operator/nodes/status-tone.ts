import type { NodeStatus } from '../../../../protocol/api/node.ts';
import type { Tone } from '../../../parts/bits.tsx';

/** How each status of a node is shown. */
export const statusTone: Record<NodeStatus, Tone> = {
  ready: 'ok',
  draining: 'warn',
  connecting: 'warn',
  unhealthy: 'danger',
  standby: 'idle',
};
