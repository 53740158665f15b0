import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { volumeEntryTypes } from '../volume.ts';
import { dateTime, int32, int64, mapOf, oneOf } from './primitives.ts';

/** Bounds of what clients may say about volumes and their content. */
const volumeBounds = {
  nameCharactersMax: 128,
  /** Depth of one listing, in levels. */
  depthMax: 10,
  /** The highest user or group ID that sandboxes know. */
  idMax: 65_535,
  /** Permission bits, with set-user-ID, set-group-ID and sticky. */
  modeMax: 0o7777,
} as const;

const copiedAt = () =>
  Type.Optional(dateTime('When its newest copy in the store of a cluster was begun; absent where there is none'));

/** A volume as lists show it. */
export const Volume = Type.Object(
  {
    volumeID: Type.String({ format: 'uuid' }),
    name: Type.String(),
    sizeMB: int32({ minimum: 1, description: 'What it can hold, MiB. Atoll only' }),
    sandboxCount: int32({ minimum: 0, description: 'Sandboxes, running or paused, that have it. Atoll only' }),
    copiedAt: copiedAt(),
  },
  { $id: 'Volume' },
);
export type Volume = Static<typeof Volume>;

/** Answer of GET /volumes/use (Atoll's own interface). */
export const VolumesUse = Type.Object(
  {
    volumes: mapOf(
      Type.Object({
        usedBytes: int64({ minimum: 0, description: 'What it takes on its machine, file system included' }),
      }),
      'By the ID of the volume',
    ),
    partial: Type.Optional(
      Type.Boolean({ description: 'The machine of some of them is out of reach now: those are left out' }),
    ),
  },
  { $id: 'VolumesUse' },
);
export type VolumesUse = Static<typeof VolumesUse>;

/** A volume with a token for its content. */
export const VolumeAndToken = Type.Object(
  {
    volumeID: Type.String({ format: 'uuid' }),
    name: Type.String(),
    token: Type.String({ description: 'For the content of this volume alone' }),
    domain: Type.Optional(Type.String({ description: 'Where the content is, if elsewhere' })),
    copiedAt: copiedAt(),
  },
  { $id: 'VolumeAndToken' },
);
export type VolumeAndToken = Static<typeof VolumeAndToken>;

/** A volume that was restored from its copy. */
export const RestoredVolume = Type.Object(
  {
    volumeID: Type.String({ format: 'uuid' }),
    name: Type.String(),
    copiedAt: dateTime('What was written to it later is lost'),
    ageSeconds: Type.Integer({ minimum: 0, description: 'How old the copy was' }),
  },
  { $id: 'RestoredVolume' },
);
export type RestoredVolume = Static<typeof RestoredVolume>;

/** Body of POST /volumes. */
export const NewVolume = Type.Object(
  { name: Type.String({ minLength: 1, maxLength: volumeBounds.nameCharactersMax, pattern: '^[a-zA-Z0-9_-]+$' }) },
  { $id: 'NewVolume' },
);

const id = () => int32({ minimum: 0, maximum: volumeBounds.idMax });
const mode = () => int32({ minimum: 0, maximum: volumeBounds.modeMax, description: 'Permission bits' });

/** Attributes of a file or directory in a volume. */
export const VolumeEntryStat = Type.Object(
  {
    name: Type.String(),
    type: oneOf(volumeEntryTypes),
    path: Type.String(),
    size: int64({ minimum: 0 }),
    mode: Type.Integer({ minimum: 0, description: 'Permission bits' }),
    uid: Type.Integer({ minimum: 0 }),
    gid: Type.Integer({ minimum: 0 }),
    atime: dateTime(),
    mtime: dateTime(),
    ctime: dateTime(),
    target: Type.Optional(Type.String({ description: 'Of a symlink' })),
  },
  { $id: 'VolumeEntryStat' },
);
export type VolumeEntryStat = Static<typeof VolumeEntryStat>;

/** Body of a change of owner or permissions of something in a volume. Absent members stay as they are. */
export const VolumeEntryChange = Type.Object(
  { uid: Type.Optional(id()), gid: Type.Optional(id()), mode: Type.Optional(mode()) },
  { $id: 'VolumeEntryChange' },
);

const path = Type.String({ minLength: 1, description: "From the volume's root" });

/** Names an entry of a volume. */
export const VolumePathQuery = Type.Object({ path });
/** Query of a list of a volume's content. `depth`: levels below `path`. */
export const VolumeListQuery = Type.Object({
  path,
  depth: Type.Optional(int32({ minimum: 1, maximum: volumeBounds.depthMax, default: 1 })),
});
/** Names an entry to make in a volume. */
export const NewVolumeEntryQuery = Type.Object({
  path,
  uid: Type.Optional(id()),
  gid: Type.Optional(id()),
  mode: Type.Optional(mode()),
  force: Type.Optional(Type.Boolean({ description: 'Make missing parents, and take what is there' })),
});
export type NewVolumeEntryQuery = Static<typeof NewVolumeEntryQuery>;
