import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { dateTime } from './primitives.ts';

export const OrphanSandbox = Type.Object(
  {
    sandboxID: Type.String(),
    nodeID: Type.String(),
    templateID: Type.Optional(Type.String({ description: 'Absent where the node can’t read what it has noted of it; then it can be removed and not adopted' })),
    setAsideAt: dateTime(),
    reason: Type.String(),
  },
  { $id: 'OrphanSandbox' },
);

export const OrphanVolume = Type.Object({ volumeID: Type.String(), nodeID: Type.String(), createdAt: dateTime() }, { $id: 'OrphanVolume' });

export const Orphans = Type.Object({ sandboxes: Type.Array(OrphanSandbox), volumes: Type.Array(OrphanVolume) }, { $id: 'Orphans' });
export type Orphans = Static<typeof Orphans>;

export const SandboxAdoption = Type.Object({ teamID: Type.String({ description: 'Who has it from now on' }) }, { $id: 'SandboxAdoption' });
