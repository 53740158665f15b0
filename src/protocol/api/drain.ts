import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { int32, oneOf } from './primitives.ts';

/** The ways to empty a machine. */
export const drainModes = ['wait', 'pause', 'move'] as const;
/** One of them. */
export type DrainMode = (typeof drainModes)[number];

/**
 * Body of POST /admin/nodes/{nodeID}/drain, for operators. `wait`: until everything that runs has ended; `pause`:
 * pauses each sandbox with its memory as soon as possible; `move`: moves each to another machine, with memory and
 * files.
 */
export const NodeDrainStart = Type.Object({ mode: oneOf(drainModes) }, { $id: 'NodeDrainStart' });

/** Query of GET /admin/nodes/{nodeID}/drain. */
export const NodeDrainQuery = Type.Object({
  mode: Type.Optional(
    Type.Unsafe<DrainMode>({
      ...oneOf(drainModes),
      description: 'Asks what could not go in this way; by default as the machine is drained, or else by pauses',
    }),
  ),
});

const DrainedSandbox = Type.Object(
  {
    sandboxID: Type.String(),
    teamID: Type.String(),
    templateID: Type.String(),
    reason: Type.Optional(Type.String({ description: "Why it can't go in this way; absent where it can" })),
  },
  { $id: 'DrainedSandbox' },
);

const DrainedVolume = Type.Object(
  {
    volumeID: Type.String(),
    teamID: Type.String(),
    name: Type.String(),
    reason: Type.Optional(Type.String({ description: "Why it can't be moved; absent where it can" })),
  },
  { $id: 'DrainedVolume' },
);

const DrainedKept = Type.Object(
  {
    sandboxes: int32({ minimum: 0, description: 'Paused ones that are not in the store' }),
    volumes: int32({ minimum: 0, description: 'Those without a copy in the store' }),
  },
  { $id: 'DrainedKept', description: "What is on the machine's disk alone, and is lost with it" },
);

/** Answer of DELETE /admin/nodes/{nodeID}, for operators: what became of everything that was on the machine. */
export const NodeForgotten = Type.Object(
  {
    nodeID: Type.String(),
    lost: Type.Object(
      {
        sandboxes: int32({ minimum: 0, description: 'Running and paused ones' }),
        volumes: int32({ minimum: 0, description: 'Those without a copy in the store' }),
      },
      { description: 'What only the machine had' },
    ),
    stored: int32({ minimum: 0, description: 'Paused sandboxes that are in the store: they go on elsewhere' }),
  },
  { $id: 'NodeForgotten' },
);
export type NodeForgotten = Static<typeof NodeForgotten>;

/** How far a machine is from being empty, for operators. Mode `none`: it is not being drained. */
export const NodeDrain = Type.Object(
  {
    nodeID: Type.String(),
    mode: oneOf(['none', ...drainModes]),
    sandboxes: Type.Array(DrainedSandbox, {
      description: 'Those that use the machine, the ones that can not go first',
    }),
    volumes: Type.Array(DrainedVolume, {
      description: 'Of a drain by moves: those that are on the machine, the ones that can not go first',
    }),
    kept: DrainedKept,
  },
  { $id: 'NodeDrain' },
);
export type NodeDrain = Static<typeof NodeDrain>;
