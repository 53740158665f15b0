import { Type } from '@sinclair/typebox';
import { driverNames, type DriverName } from '../driver.ts';
import type { EgressPolicy } from '../network/network.ts';
import type { SandboxVolume } from '../volume.ts';
import { digests, identifier, mapOf, oneOf, optional, schemaOf } from './schema.ts';

// The messages that start a sandbox on its node. Their types are derived from them: see `CreateSandbox` in ../node.ts.

const text = () => Type.String();
const texts = () => Type.Array(Type.String());

/** The drivers, by name. */
export const DriverNames = schemaOf<DriverName>()(oneOf(...driverNames));

/** Limits of a sandbox. */
export const Resources = Type.Object({
  cpuCount: Type.Number(),
  memoryMiB: Type.Number(),
  /** Disk space of the sandbox in addition to its template, MiB. */
  diskMiB: Type.Number(),
});

/** A sandbox with its start command running and ready, as a snapshot. */
export const Started = Type.Object({
  snapshotId: identifier(),
  /** Replace the image's layers. */
  layers: digests(),
  /** Those of the sandbox that the snapshot was taken of: programs look at them when they start. */
  resources: Resources,
});

/** A template as a node needs it: layers, and how a sandbox made from it starts. */
export const Image = Type.Object({
  templateId: identifier(),
  buildId: identifier(),
  /** Layer digests (`sha256:<hex>`), lowest first. */
  layers: digests(),
  defaultUser: text(),
  /** Empty: the user's home directory. */
  defaultWorkdir: text(),
  startCommand: optional(text()),
  readyCommand: optional(text()),
  /** Environment of the start and ready commands only; never exported into processes that clients start. */
  buildEnv: mapOf(text()),
  /** The snapshot whose memory a sandbox starts with: the processes that ran then go on. Absent: it boots. */
  memorySnapshotId: optional(identifier()),
  /** The state after the start command, where a build has kept it. A sandbox that starts from it does not boot. */
  started: optional(Started),
  /** Absent: the node's default. */
  driver: optional(DriverNames),
});

/** Policy for what leaves a sandbox. */
export const Network = schemaOf<EgressPolicy>()(
  Type.Object({
    internetAccess: Type.Boolean(),
    allowOut: optional(texts()),
    denyOut: optional(texts()),
    egressProxy: optional(Type.Object({ address: text(), username: optional(text()), password: optional(text()) })),
    headerRules: optional(mapOf(mapOf(text()))),
  }),
);

/** A volume and where a sandbox mounts it. */
export const Mounted = schemaOf<SandboxVolume>()(Type.Object({ volumeId: identifier(), path: text() }));

/**
 * What a sandbox is told at each start, by a create and by every resume. The api fills in those members that its record
 * of the sandbox has under the same name.
 */
const eachStart = {
  /** The team it belongs to: teams have shares of the machine. Absent: no known team. */
  teamId: optional(identifier()),
  network: Network,
  /** The sandbox's global environment, the platform's own variables included. */
  envVars: mapOf(text()),
  /** Required from clients of the agent, or null for an unsecured sandbox. */
  accessToken: Type.Union([text(), Type.Null()]),
};
/** The settings of each start alone. */
export const EachStart = Type.Object(eachStart);

/** A request to start a sandbox. */
export const Create = Type.Object({
  sandboxId: identifier(),
  /** One incarnation of the sandbox (UUID). */
  executionId: identifier(),
  image: Image,
  resources: Resources,
  ...eachStart,
  /** Volumes that it mounts until its end, however often it is paused. Absent: none. */
  volumes: optional(Type.Array(Mounted)),
});

/** A request to resume a paused sandbox. The reference names the execution that was paused. */
export const Resume = Type.Object({
  sandboxId: identifier(),
  executionId: identifier(),
  /** The incarnation that begins (UUID). */
  nextExecutionId: identifier(),
  /** False: it boots from its files, even where its memory was kept. */
  memory: Type.Boolean(),
  ...eachStart,
});
