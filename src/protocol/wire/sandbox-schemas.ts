import { Type } from '@sinclair/typebox';
import type { SandboxLogEntry, ReadSandboxLogs } from '../logs.ts';
import { sandboxLoggers, sandboxLogLevels } from '../logs.ts';
import type {
  ExecutionRef,
  IncidentsPage,
  IncidentsCursor,
  Kept,
  MemoryAbility,
  MemoryFacts,
  NodeInfo,
  NodeSandbox,
  PausedSandbox,
  ResumedSandbox,
  SetAsideSandbox,
  Snapshot,
  TakeSnapshot,
} from '../node.ts';
import type { DiskUsage, NodeUsage, SampleRange, SandboxSample, TrafficCounters } from '../node-usage.ts';
import { count, digests, identifier, mapOf, oneOf, optional, schemaOf } from './schema.ts';
import { DriverNames, Mounted, Resources } from './start-schemas.ts';

// Schemas of the messages about sandboxes. Their types say what they mean.

const text = () => Type.String();
const texts = () => Type.Array(Type.String());

/** The parts of a sandbox that are kept. */
export const KeptWhat = schemaOf<Kept>()(oneOf('memory', 'filesystem'));

export const Execution = schemaOf<ExecutionRef>()(Type.Object({ sandboxId: identifier(), executionId: identifier() }));

const running = {
  sandboxId: identifier(),
  executionId: identifier(),
  startedAtMs: Type.Number(),
  resources: Resources,
  diskFailed: Type.Boolean(),
};
export const Running = schemaOf<NodeSandbox>()(Type.Object(running));
export const Paused = schemaOf<PausedSandbox>()(
  Type.Object({
    sandboxId: identifier(),
    executionId: identifier(),
    kept: KeptWhat,
    pausedAtMs: Type.Number(),
    agentUnresponsive: Type.Optional(Type.Literal(true)),
  }),
);

export const Resumed = schemaOf<ResumedSandbox>()(Type.Object({ ...running, from: KeptWhat }));

export const Take = schemaOf<TakeSnapshot>()(
  Type.Object({
    sandboxId: identifier(),
    executionId: identifier(),
    snapshotId: identifier(),
    memory: Type.Boolean(),
    transient: Type.Optional(Type.Literal(true)),
  }),
);
export const Taken = schemaOf<Snapshot>()(Type.Object({ layers: digests(), kept: KeptWhat, driver: DriverNames }));

export const Ability = schemaOf<MemoryAbility>()(
  Type.Union([Type.Object({ kept: Type.Literal(true) }), Type.Object({ kept: Type.Literal(false), reason: text() })]),
);

export const Cursor = schemaOf<IncidentsCursor>()(Type.Object({ epoch: text(), number: count() }));
export const Incidents = schemaOf<IncidentsPage>()(
  Type.Object({
    incidents: Type.Array(
      Type.Object({
        sandboxId: identifier(),
        executionId: identifier(),
        reason: oneOf('init_exited', 'out_of_memory', 'memory_lost', 'disk_failed'),
      }),
    ),
    next: Cursor,
  }),
);

export const SetAside = schemaOf<SetAsideSandbox>()(
  Type.Object({
    sandboxId: text(),
    known: Type.Union([
      Type.Object({
        executionId: text(),
        kept: KeptWhat,
        image: Type.Object({ templateId: text(), buildId: text() }),
        resources: Resources,
        volumes: Type.Array(Mounted),
        startedAtMs: Type.Number(),
      }),
      Type.Null(),
    ]),
    sinceMs: Type.Number(),
    reason: text(),
  }),
);

export const Traffic = schemaOf<TrafficCounters>()(
  Type.Object({ bytesOut: Type.Number(), bytesIn: Type.Number(), denied: Type.Number() }),
);

export const Sample = schemaOf<SandboxSample>()(
  Type.Object({
    atSeconds: Type.Number(),
    cpuCount: Type.Number(),
    cpuUsedPct: Type.Number(),
    memUsed: Type.Number(),
    memTotal: Type.Number(),
    memCache: Type.Number(),
    diskUsed: Type.Number(),
    diskTotal: Type.Number(),
  }),
);
export const Range = schemaOf<SampleRange>()(
  Type.Object({ startSeconds: Type.Number(), endSeconds: Type.Number(), pointsMax: Type.Number() }),
);

/** What memory depends on in a machine. */
export const Memory = schemaOf<MemoryFacts>()(
  Type.Object({
    architecture: text(),
    kernel: text(),
    criu: Type.Union([text(), Type.Null()]),
    cpuFlags: texts(),
    agent: text(),
  }),
);

export const Info = schemaOf<NodeInfo>()(
  Type.Object({
    nodeId: text(),
    cpuCount: Type.Number(),
    memoryBytes: Type.Number(),
    sandboxCount: Type.Number(),
    sandboxesMax: Type.Number(),
    driver: DriverNames,
    memory: Ability,
    memoryByDriver: Type.Object({ crun: optional(Ability), gvisor: optional(Ability) }),
    machine: optional(
      Type.Object({ cpuFamily: text(), cpuModel: text(), cpuModelName: text(), cpuArchitecture: text() }),
    ),
    restores: optional(Memory),
    earlierAgents: optional(texts()),
    labels: optional(mapOf(text())),
    cpuOvercommit: optional(Type.Number()),
  }),
);

const Disk = schemaOf<DiskUsage>()(
  Type.Object({
    mountPoint: text(),
    device: text(),
    filesystemType: text(),
    usedBytes: Type.Number(),
    totalBytes: Type.Number(),
  }),
);

export const Usage = schemaOf<NodeUsage>()(
  Type.Object({
    cpuPercent: Type.Number(),
    memoryUsedBytes: Type.Number(),
    hugePages: Type.Object({
      total: Type.Number(),
      used: Type.Number(),
      reserved: Type.Number(),
      pageSizeBytes: Type.Number(),
    }),
    disks: Type.Array(Disk),
    space: Type.Object({
      freeBytes: Type.Number(),
      owedBytes: Type.Number(),
      reserveBytes: Type.Number(),
      held: Type.Boolean(),
      failedDisks: Type.Number(),
    }),
    pool: optional(
      Type.Object({
        size: Type.Number(),
        ready: Type.Number(),
        hits: Type.Number(),
        misses: Type.Number(),
        refills: Type.Number(),
        failures: Type.Number(),
        restored: optional(
          Type.Object({
            ready: Type.Number(),
            hits: Type.Number(),
            misses: Type.Number(),
            refills: Type.Number(),
            failures: Type.Number(),
          }),
        ),
      }),
    ),
    traffic: Traffic,
    restarts: optional(
      Type.Array(Type.Object({ process: Type.String(), reason: Type.String(), count: Type.Number() })),
    ),
  }),
);

const Level = oneOf(...sandboxLogLevels);
export const ReadLogs = schemaOf<ReadSandboxLogs>()(
  Type.Object({
    sandboxId: identifier(),
    fromMs: optional(Type.Number()),
    beforeMs: optional(Type.Number()),
    backward: Type.Boolean(),
    minimum: optional(Level),
    logger: optional(oneOf(...sandboxLoggers)),
    search: optional(text()),
    limit: count(),
  }),
);
export const LogEntry = schemaOf<SandboxLogEntry>()(
  Type.Object({ timestampMs: Type.Number(), level: Level, logger: text(), message: text(), fields: mapOf(text()) }),
);
