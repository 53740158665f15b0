import { Type } from '@sinclair/typebox';
import type { NodeBuildProtocol } from '../build.ts';
import type { NodeProtocol } from '../node.ts';
import type { VolumeProtocol } from '../volume.ts';
import { Outcome, Progress, Stage, Start } from './build-schemas.ts';
import { method, type MethodTable } from './method.ts';
import {
  Ability,
  Execution,
  Incidents,
  Info,
  LogEntry,
  Paused,
  Cursor,
  Range,
  ReadLogs,
  Resumed,
  Running,
  Sample,
  SetAside,
  Take,
  Taken,
  Traffic,
  Usage,
} from './sandbox-schemas.ts';
import { Create, Network, Resume } from './start-schemas.ts';
import { count, descriptor, digests, identifier, mapOf, nothing, oneOf, optional } from './schema.ts';
import { Entry, EntryChange, NewEntry, Volume } from './volume-schemas.ts';

/** For calls that copy disks and memory, or wait until a sandbox is gone completely. Milliseconds. */
const longMs = 30 * 60_000;
/** For jobs of a builder, including the wait for a builder. Milliseconds. */
const readMs = 60_000;
/** Longer than the wait that a poll asks for. Milliseconds. */
const pollMs = 90_000;
const id = identifier;
const path = () => Type.String();

const volumes = {
  create: method([id(), Type.Number()], nothing()),
  remove: method([id()], nothing(), { deadlineMs: longMs }),
  list: method([], Type.Array(Volume)),
  taken: method([Type.Array(id())], mapOf(count())),
  stat: method([id(), path()], Entry),
  listDirectory: method([id(), path(), Type.Number()], Type.Array(Entry)),
  makeDirectory: method([id(), path(), NewEntry], Entry),
  changeEntry: method([id(), path(), EntryChange], Entry),
  removeEntry: method([id(), path(), optional(id())], nothing(), { deadlineMs: longMs }),
  openRead: method([id(), path()], Type.Object({ sizeBytes: count(), descriptor: descriptor() }), { passes: 'member' }),
  openWrite: method([id(), path(), NewEntry], Type.Object({ writeId: id(), descriptor: descriptor() }), {
    passes: 'member',
    droppedBy: 'dropWrite',
  }),
  keepWrite: method([id(), count()], Entry, { deadlineMs: longMs }),
  dropWrite: method([id()], nothing()),
} satisfies MethodTable<VolumeProtocol>;

/** The methods of a node, with what each takes and answers and who may call it. */
export const nodeTable = {
  info: method([], Info),
  usage: method([], Usage),
  create: method([Create], Running, { deadlineMs: longMs }),
  kill: method([Execution, optional(oneOf('asked', 'timed_out'))], nothing(), { deadlineMs: longMs }),
  withdraw: method([Execution], Type.Boolean(), { deadlineMs: longMs }),
  list: method([], Type.Array(Running)),
  pause: method(
    [
      Execution,
      Type.Object({
        memory: Type.Boolean(),
        requireAgent: Type.Optional(Type.Boolean()),
        noteAgent: Type.Optional(Type.Boolean()),
      }),
    ],
    Paused,
    { deadlineMs: longMs },
  ),
  resume: method([Resume], Resumed, { deadlineMs: longMs }),
  memoryAbility: method([Execution], Ability),
  listPaused: method([], Type.Array(Paused)),
  snapshot: method([Take], Taken, { deadlineMs: longMs }),
  deleteSnapshot: method([id()], nothing(), { deadlineMs: longMs }),
  listSnapshots: method([], Type.Array(Type.Object({ snapshotId: id(), takenAtMs: Type.Number() }))),
  incidents: method([Type.Union([Cursor, Type.Null()]), count()], Incidents, { deadlineMs: pollMs }),
  dial: method([id(), Type.Integer({ minimum: 0, maximum: 65_535 })], descriptor(), {
    callers: ['edge'],
    passes: 'whole',
  }),
  updateNetwork: method([Execution, Network], nothing()),
  logs: method([ReadLogs], Type.Array(LogEntry)),
  traffic: method([Execution], Traffic),
  volumes,
  setAside: method([Execution, Type.String()], nothing(), { deadlineMs: longMs }),
  listSetAside: method([], Type.Array(SetAside)),
  takeBack: method([Execution], Paused, { deadlineMs: longMs }),
  removeSetAside: method([id()], nothing(), { deadlineMs: longMs }),
  samples: method([id(), Range], Type.Array(Sample)),
  latestSamples: method([Type.Array(id())], mapOf(Sample)),
} satisfies MethodTable<NodeProtocol>;

/** The methods of a node that build templates. */
export const buildTable = {
  readDockerfile: method([Type.String()], Type.Array(Stage), { deadlineMs: readMs }),
  start: method([Start], nothing()),
  progress: method([id(), count(), count()], Progress, { deadlineMs: pollMs }),
  answer: method([id(), id(), Type.Union([Outcome, Type.Null()])], nothing()),
  cancel: method([id(), Type.String()], nothing(), { deadlineMs: longMs }),
  forget: method([id()], nothing()),
  collect: method(
    [digests(), optional(digests())],
    Type.Object({ layersDeleted: count(), filesDeleted: count(), bytesFreed: count() }),
    { deadlineMs: longMs },
  ),
  layerBytes: method([digests()], mapOf(count())),
} satisfies MethodTable<NodeBuildProtocol>;
