import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { dateTime } from './primitives.ts';

/** A sandbox on a node that the database does not know. */
const OrphanSandbox = Type.Object(
  {
    sandboxID: Type.String(),
    nodeID: Type.String(),
    templateID: Type.Optional(
      Type.String({
        description: "Absent where the node can't read its record; then it can be removed and not adopted",
      }),
    ),
    setAsideAt: dateTime(),
    reason: Type.String(),
  },
  { $id: 'OrphanSandbox' },
);

/** A volume on a node that the database does not know. */
const OrphanVolume = Type.Object(
  { volumeID: Type.String(), nodeID: Type.String(), createdAt: dateTime() },
  { $id: 'OrphanVolume' },
);

/** Everything that was set aside and waits for an operator's decision. */
export const Orphans = Type.Object(
  {
    sandboxes: Type.Array(OrphanSandbox),
    volumes: Type.Array(OrphanVolume),
    unansweredNodeIDs: Type.Optional(
      Type.Array(Type.String(), {
        description: 'The nodes that did not answer, and may keep more; absent where all have',
      }),
    ),
  },
  { $id: 'Orphans' },
);
/** Sandboxes and volumes that the database does not know. */
export type Orphans = Static<typeof Orphans>;

/** Body of the adoption of an orphan: from then on it belongs to the team, paused. */
export const SandboxAdoption = Type.Object(
  { teamID: Type.String({ description: 'Who has it from now on' }) },
  { $id: 'SandboxAdoption' },
);
