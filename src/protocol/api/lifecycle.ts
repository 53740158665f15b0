import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { ApiError, int32 } from './primitives.ts';
import { Sandbox, defaultTimeoutSeconds, durability } from './sandbox.ts';

/** Bodies and answers of the operations that keep a sandbox beyond its processes: pause, resume, fork, snapshot. */

/** Body of POST /sandboxes/{sandboxID}/pause. */
export const SandboxPause = Type.Object(
  {
    memory: Type.Optional(
      Type.Boolean({ default: true, description: 'False: keep the files alone; a resume boots from them' }),
    ),
    durability: Type.Optional(
      durability('cluster: answer when it outlives its machine, too. Absent: as the team has it. Atoll only'),
    ),
    requireHealthyGuest: Type.Optional(
      Type.Boolean({
        default: false,
        description:
          'True: 503, and it runs on, where the agent inside does not answer within a few seconds; so it is with ' +
          'memory: false in any case. Else such a pause is marked: envdUnresponsiveAtPause',
      }),
    ),
  },
  { $id: 'SandboxPause' },
);

/** Body of POST /sandboxes/{sandboxID}/resume. `timeout` in seconds. */
export const SandboxResume = Type.Object(
  {
    timeout: Type.Optional(int32({ minimum: 1, default: defaultTimeoutSeconds.v1 })),
    autoPause: Type.Optional(Type.Boolean({ description: 'When the time is over: pause instead of kill' })),
    memory: Type.Optional(Type.Boolean({ default: true, description: 'False: boot from the files alone' })),
  },
  { $id: 'SandboxResume' },
);

/** The most sandboxes that one fork makes. */
const forkCountMax = 100;

/** Body of POST /sandboxes/{sandboxID}/fork. `timeout` in seconds, for each fork. */
export const SandboxFork = Type.Object(
  {
    timeout: Type.Optional(int32({ minimum: 1, default: defaultTimeoutSeconds.v1 })),
    count: Type.Optional(int32({ minimum: 1, maximum: forkCountMax, default: 1 })),
  },
  { $id: 'SandboxFork' },
);

/** The result of one fork: a request gets as many as the forks it asked for, and each succeeds or fails alone. */
export const SandboxForkResult = Type.Object(
  { sandbox: Type.Optional(Sandbox), error: Type.Optional(ApiError) },
  { $id: 'SandboxForkResult', description: 'One of both' },
);
export type SandboxForkResult = Static<typeof SandboxForkResult>;

/** Body of POST /sandboxes/{sandboxID}/snapshots. */
export const NewSnapshot = Type.Object(
  {
    name: Type.Optional(
      Type.String({ description: '[namespace/]name[:tag]; a name that the team has gets a further build' }),
    ),
    memory: Type.Optional(
      Type.Boolean({
        default: true,
        description: 'False: keep the files alone; sandboxes made from it boot from them',
      }),
    ),
  },
  { $id: 'NewSnapshot' },
);

/** A snapshot as clients see it: a template with builds. */
export const SnapshotInfo = Type.Object(
  {
    snapshotID: Type.String({
      description: 'What a create takes as templateID: namespace/name:tag, or templateID:tag',
    }),
    names: Type.Array(Type.String({ description: 'namespace/name' })),
  },
  { $id: 'SnapshotInfo' },
);
export type SnapshotInfo = Static<typeof SnapshotInfo>;
