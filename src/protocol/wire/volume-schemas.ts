import { Type } from '@sinclair/typebox';
import type { NewVolumeEntry, NodeVolume, VolumeEntry } from '../volume.ts';
import { volumeEntryTypes } from '../volume.ts';
import { oneOf, optional, schemaOf } from './schema.ts';

// Schemas of the messages about volumes. Their types say what they mean.

export const Volume = schemaOf<NodeVolume>()(
  Type.Object({ volumeId: Type.String(), createdAtMs: Type.Number(), sizeMiB: optional(Type.Integer({ minimum: 0 })) }),
);

export const Entry = schemaOf<VolumeEntry>()(
  Type.Object({
    name: Type.String(),
    type: oneOf(...volumeEntryTypes),
    path: Type.String(),
    sizeBytes: Type.Number(),
    mode: Type.Integer(),
    uid: Type.Integer(),
    gid: Type.Integer(),
    accessedAtMs: Type.Number(),
    modifiedAtMs: Type.Number(),
    changedAtMs: Type.Number(),
    target: optional(Type.String()),
  }),
);

export const NewEntry = schemaOf<NewVolumeEntry>()(
  Type.Object({
    uid: Type.Integer({ minimum: 0 }),
    gid: Type.Integer({ minimum: 0 }),
    mode: Type.Integer({ minimum: 0 }),
    force: Type.Boolean(),
  }),
);

/** Attributes that `VolumeProtocol.change` changes. */
export const EntryChange = Type.Object({
  uid: optional(Type.Integer({ minimum: 0 })),
  gid: optional(Type.Integer({ minimum: 0 })),
  mode: optional(Type.Integer({ minimum: 0 })),
});
