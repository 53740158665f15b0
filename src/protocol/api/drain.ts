import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { oneOf } from './primitives.ts';

/**
 * Body of POST /admin/nodes/{nodeID}/drain, for operators. `wait`: for the ends of what runs; `pause`: with its memory,
 * as soon as it can be; `move` is refused.
 */
export const NodeDrainStart = Type.Object({ mode: oneOf(['wait', 'pause', 'move']) }, { $id: 'NodeDrainStart' });

const DrainedSandbox = Type.Object(
  {
    sandboxID: Type.String(),
    teamID: Type.String(),
    templateID: Type.String(),
    reason: Type.Optional(Type.String({ description: "Why it can't be paused; absent where it can be" })),
  },
  { $id: 'DrainedSandbox' },
);

/** How far a machine is from being empty, for operators. Mode `none`: it is not being drained. */
export const NodeDrain = Type.Object(
  {
    nodeID: Type.String(),
    mode: oneOf(['none', 'wait', 'pause']),
    sandboxes: Type.Array(DrainedSandbox, {
      description: 'Those that use the machine, the ones that can not be paused first',
    }),
  },
  { $id: 'NodeDrain' },
);
export type NodeDrain = Static<typeof NodeDrain>;
