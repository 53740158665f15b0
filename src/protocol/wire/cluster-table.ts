import { Type } from '@sinclair/typebox';
import type {
  Beat,
  BeatAnswer,
  ComingEnd,
  DraftExchange,
  DraftRef,
  GateProtocol,
  LayerProtocol,
  PauseExchange,
  PauseFacts,
  SnapshotExchange,
  TransferProtocol,
  VolumeExchange,
} from '../cluster.ts';
import { driverNames } from '../driver.ts';
import type { UploadExchange, UploadRef } from '../upload.ts';
import { method, type MethodTable } from './method.ts';
import { Execution, Info, KeptWhat, Memory, Paused } from './sandbox-schemas.ts';
import { count, descriptor, digest, digests, identifier, nothing, oneOf, schemaOf } from './schema.ts';

/** A node that does not answer within this time counts as out of reach for now. Milliseconds. */
const beatMs = 2_000;
/** For calls that read a whole layer. Milliseconds. */
const layerMs = 30 * 60_000;
/** Longer than any certificate or public key. */
const pem = () => Type.String({ maxLength: 10_000 });

const End = schemaOf<ComingEnd>()(
  Type.Object({
    sandboxId: identifier(),
    executionId: identifier(),
    inMs: Type.Number(),
    then: oneOf('kill', 'pause'),
    memory: Type.Boolean(),
  }),
);
const BeatSchema = schemaOf<Beat>()(
  Type.Object({
    lease: Type.Union([Type.Object({ epoch: Type.String(), untilMs: Type.Number() }), Type.Null()]),
    isolationSeconds: Type.Number({ minimum: 0 }),
    pauseFirst: Type.Boolean(),
    ends: Type.Array(End),
  }),
);
const Answer = schemaOf<BeatAnswer>()(
  Type.Object({
    epoch: Type.String(),
    nowMs: Type.Number(),
    bootId: Type.String(),
    release: Type.String(),
    info: Info,
    isPausing: Type.Boolean(),
  }),
);

/** The methods of a node's gate. */
export const gateTable = {
  beat: method([BeatSchema], Answer, { deadlineMs: beatMs }),
  newKey: method([], pem()),
  exchange: method([pem()], nothing()),
} satisfies MethodTable<GateProtocol>;

const Read = Type.Object({ sizeBytes: count(), descriptor: descriptor() });
const Write = Type.Object({ writeId: identifier(), descriptor: descriptor() });
const begins = { passes: 'member', droppedBy: 'dropWrite' } as const;

/** The methods of a node for layers that come from other nodes. */
export const layerTable = {
  missing: method([digests()], digests()),
  bytes: method([digest()], count()),
  openRead: method([digest()], Read, { passes: 'member' }),
  openWrite: method([digest(), count()], Write, begins),
  keepWrite: method([identifier(), count()], nothing(), { deadlineMs: layerMs }),
  dropWrite: method([identifier()], nothing()),
} satisfies MethodTable<LayerProtocol>;

const Upload = schemaOf<UploadRef>()(Type.Object({ teamId: identifier(), hash: identifier() }));

/** The methods of a node for uploaded archives. */
export const uploadTable = {
  missing: method([Type.Array(Upload)], Type.Array(Upload)),
  openRead: method([Upload], Read, { passes: 'member' }),
  openWrite: method([Upload, count()], Write, begins),
  keepWrite: method([identifier(), count()], nothing(), { deadlineMs: layerMs }),
  dropWrite: method([identifier()], nothing()),
} satisfies MethodTable<UploadExchange>;

const Facts = schemaOf<PauseFacts>()(
  Type.Object({ kept: KeptWhat, sizeBytes: count(), layers: digests(), driver: oneOf(...driverNames), memory: Memory }),
);
/** 32 bytes, base64url. */
const key = () => Type.String({ minLength: 43, maxLength: 43 });

/** The methods of a node for what its paused sandboxes keep. */
export const pauseTable = {
  describe: method([Execution], Facts, { deadlineMs: layerMs }),
  openRead: method([Execution, key()], Read, { passes: 'member', deadlineMs: layerMs }),
  openWrite: method([Execution, key(), count()], Write, begins),
  keepWrite: method([identifier()], Paused, { deadlineMs: layerMs }),
  dropWrite: method([identifier()], nothing()),
} satisfies MethodTable<PauseExchange>;

const Draft = schemaOf<DraftRef>()(
  Type.Object({ sandboxId: identifier(), executionId: identifier(), draftId: identifier() }),
);

/** The methods of a node for drafts of sandboxes that are being moved. */
export const draftTable = {
  describe: method([Draft], Facts, { deadlineMs: layerMs }),
  openRead: method([Draft, key()], Read, { passes: 'member', deadlineMs: layerMs }),
  openRest: method([Draft, key()], Read, { passes: 'member', deadlineMs: layerMs }),
  openWrite: method([Draft, key(), count()], Write, begins),
  keepWrite: method([identifier()], nothing(), { deadlineMs: layerMs }),
  dropWrite: method([identifier()], nothing()),
  drop: method([Draft], nothing()),
} satisfies MethodTable<DraftExchange>;

/** The methods of a node for the memory of its snapshots. */
export const snapshotTable = {
  describe: method([identifier()], Facts, { deadlineMs: layerMs }),
  openRead: method([identifier(), key()], Read, { passes: 'member', deadlineMs: layerMs }),
  openWrite: method([identifier(), key(), count()], Write, begins),
  keepWrite: method([identifier()], nothing(), { deadlineMs: layerMs }),
  dropWrite: method([identifier()], nothing()),
} satisfies MethodTable<SnapshotExchange>;

/** The methods of a node for the content of its volumes. */
export const volumeCopyTable = {
  states: method(
    [],
    Type.Array(Type.Object({ volumeId: identifier(), isInSandbox: Type.Boolean(), changedAtMs: Type.Number() })),
  ),
  fix: method([identifier(), oneOf('copy', 'seal')], Type.Object({ fixedId: identifier(), sizeBytes: count() }), {
    deadlineMs: layerMs,
  }),
  openRead: method([identifier(), key()], Read, { passes: 'member', deadlineMs: layerMs }),
  requireFixed: method([identifier()], nothing()),
  release: method([identifier()], nothing()),
  openWrite: method([identifier(), key(), count()], Write, begins),
  keepWrite: method([identifier()], nothing(), { deadlineMs: layerMs }),
  dropWrite: method([identifier()], nothing()),
} satisfies MethodTable<VolumeExchange>;

/** Signed URLs, longer than any store makes them. */
const urls = () => Type.Array(Type.String({ maxLength: 4096 }), { maxItems: 10_000 });

/** The methods of a gate for what its machine keeps in a store. */
export const transferTable = {
  sendLayer: method([digest(), urls()], nothing(), { deadlineMs: layerMs }),
  receiveLayer: method([digest(), count(), urls()], nothing(), { deadlineMs: layerMs }),
  receiveUpload: method([Upload, count(), urls()], nothing(), { deadlineMs: layerMs }),
  sendPause: method([Execution, key(), urls()], nothing(), { deadlineMs: layerMs }),
  receivePause: method([Execution, key(), count(), urls()], Paused, { deadlineMs: layerMs }),
  sendSnapshot: method([identifier(), key(), urls()], nothing(), { deadlineMs: layerMs }),
  receiveSnapshot: method([identifier(), key(), count(), urls()], nothing(), { deadlineMs: layerMs }),
  sendVolume: method([identifier(), key(), urls()], nothing(), { deadlineMs: layerMs }),
  receiveVolume: method([identifier(), key(), count(), urls()], nothing(), { deadlineMs: layerMs }),
} satisfies MethodTable<TransferProtocol>;
