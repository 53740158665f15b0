import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { durabilities, type Durability } from '../durability.ts';
import { transitions, type Transition } from '../state.ts';
import { SandboxNetworkConfig } from './network.ts';
import { dateTime, freeObject, int32, mapOf, nullable, oneOf, stringMap } from './primitives.ts';

/** `clientID` of every answer: kept for old clients, the same everywhere. */
export const clientId = '6532622b';

/** A volume and where a sandbox mounts it. */
export const VolumeMount = Type.Object(
  {
    name: Type.String({ description: 'Volume name' }),
    path: Type.String({ description: 'Mount path in the sandbox' }),
  },
  { $id: 'VolumeMount' },
);
export type VolumeMount = Static<typeof VolumeMount>;

/** What a pause survives. */
export const durability = (description: string) =>
  Type.Unsafe<Durability>(
    Type.Union(
      durabilities.map(name => Type.Literal(name)),
      { description },
    ),
  );

const identity = {
  templateID: Type.String(),
  sandboxID: Type.String(),
  clientID: Type.String({ description: 'Deprecated' }),
  envdVersion: Type.String({ description: 'Version of the in-sandbox agent' }),
};

/** A sandbox as create, connect and resume answer it. */
export const Sandbox = Type.Object(
  {
    ...identity,
    alias: Type.Optional(Type.String()),
    envdAccessToken: Type.Optional(nullable(Type.String({ description: 'Null when the sandbox is not secured' }))),
    trafficAccessToken: Type.Optional(
      nullable(Type.String({ description: 'Only when public traffic is not allowed' })),
    ),
    domain: Type.Optional(nullable(Type.String({ description: 'Deprecated, null' }))),
  },
  { $id: 'Sandbox' },
);
export type Sandbox = Static<typeof Sandbox>;

const listed = {
  ...identity,
  alias: Type.Optional(Type.String()),
  nodeID: Type.String({ description: 'The node that runs it, or keeps what is paused' }),
  startedAt: dateTime(),
  endAt: dateTime('Running: when it expires. Paused: when it was paused'),
  cpuCount: int32({ minimum: 1 }),
  memoryMB: int32({ minimum: 128 }),
  diskSizeMB: int32({ minimum: 0 }),
  state: oneOf(['running', 'paused']),
  transition: Type.Optional(
    Type.Unsafe<Transition>(
      Type.Union(
        transitions.map(name => Type.Literal(name)),
        { description: 'What is being done with it at this moment; absent while nothing is. Atoll only' },
      ),
    ),
  ),
  metadata: Type.Optional(stringMap()),
  volumeMounts: Type.Array(VolumeMount),
  pauseMode: Type.Optional(
    Type.Unsafe<'full' | 'filesystem'>(
      Type.Union([Type.Literal('full'), Type.Literal('filesystem')], {
        description: 'Of a paused sandbox: whether its memory was kept with its files, or its files alone',
      }),
    ),
  ),
  envdUnresponsiveAtPause: Type.Optional(
    Type.Boolean({
      description:
        'Of a paused sandbox, true: its agent did not answer when its memory was kept. It is resumed with ' +
        'memory: false, without that memory; else 409, sandbox_snapshot_guest_agent_unresponsive',
    }),
  ),
  durability: Type.Optional(
    durability('Of a paused sandbox: node: it is on its machine alone; cluster: it outlives that. Atoll only'),
  ),
};

/** A sandbox as lists show it. */
export const ListedSandbox = Type.Object(listed, { $id: 'ListedSandbox' });
export type ListedSandbox = Static<typeof ListedSandbox>;

/** A sandbox as GET /sandboxes/{sandboxID} answers it. */
export const SandboxDetail = Type.Object(
  {
    ...listed,
    envdAccessToken: Type.Optional(Type.String()),
    allowInternetAccess: Type.Optional(nullable(Type.Boolean())),
    domain: Type.Optional(nullable(Type.String())),
    network: Type.Optional(SandboxNetworkConfig),
    lifecycle: Type.Object({
      autoResume: Type.Boolean(),
      onTimeout: oneOf(['kill', 'pause']),
      durability: Type.Optional(durability('Of the pause when the time is over. Atoll only')),
    }),
  },
  { $id: 'SandboxDetail' },
);
export type SandboxDetail = Static<typeof SandboxDetail>;

const templateID = Type.String({ description: 'Template ID, name or name:tag' });
const createOptions = {
  autoPause: Type.Optional(
    Type.Boolean({ default: false, description: 'When the time is over: pause instead of kill' }),
  ),
  autoPauseMemory: Type.Optional(
    Type.Boolean({ default: true, description: 'False: an automatic pause keeps the filesystem alone' }),
  ),
  autoPauseDurability: Type.Optional(
    durability('What an automatic pause is to outlive. With cluster, one that can not be stored stays on its machine'),
  ),
  autoResume: Type.Optional(Type.Object({ enabled: Type.Optional(Type.Boolean({ default: false })) })),
  secure: Type.Optional(Type.Boolean({ description: 'Require the access token inside the sandbox' })),
  allow_internet_access: Type.Optional(Type.Boolean({ default: true })),
  network: Type.Optional(SandboxNetworkConfig),
  metadata: Type.Optional(stringMap('What lists show and can look for: up to 256 pairs, and 256 KiB as JSON')),
  envVars: Type.Optional(stringMap('Environment of every process in the sandbox')),
  mcp: Type.Optional(freeObject('Recorded only; up to 64 KiB')),
  iam: Type.Optional(
    Type.Object({ tokens: Type.Optional(mapOf(Type.Object({ audience: Type.String(), tokenType: Type.String() }))) }),
  ),
  volumeMounts: Type.Optional(Type.Array(VolumeMount)),
};

/** Longest `Idempotency-Key`, in characters, and how long a key is valid. */
export const idempotencyBounds = {
  keyCharactersMax: 255,
  keptHours: 24,
  /** Keys of one team; beyond that, the oldest are forgotten early. */
  perTeamMax: 200_000,
} as const;

const keyHeaders = (description: string) =>
  Type.Object({
    'idempotency-key': Type.Optional(
      Type.String({ maxLength: idempotencyBounds.keyCharactersMax, pattern: '^[!-~]+$', description }),
    ),
  });

const answeredAlike = `all are answered alike for ${idempotencyBounds.keptHours} hours`;

/** Headers of POST /sandboxes and POST /v2/sandboxes. */
export const CreateHeaders = keyHeaders(`The same request with the same key makes one sandbox, and ${answeredAlike}`);

/** Headers of other requests that make something: forks, snapshots, volumes, builds. */
export const OnceHeaders = keyHeaders(`The same request with the same key is carried out once, and ${answeredAlike}`);

/** The default lifetimes, seconds, of `POST /sandboxes` and `POST /v2/sandboxes`. */
export const defaultTimeoutSeconds = { v1: 15, v2: 300 } as const;

/** Body of POST /sandboxes. `timeout` in seconds. */
export const NewSandbox = Type.Object(
  { templateID, timeout: Type.Optional(int32({ minimum: 1, default: defaultTimeoutSeconds.v1 })), ...createOptions },
  { $id: 'NewSandbox' },
);
export type NewSandbox = Static<typeof NewSandbox>;

/** Body of POST /v2/sandboxes: as of POST /sandboxes, with another default `timeout`. */
export const NewSandboxV2 = Type.Object(
  { templateID, timeout: Type.Optional(int32({ minimum: 1, default: defaultTimeoutSeconds.v2 })), ...createOptions },
  { $id: 'NewSandboxV2' },
);

/** Body of POST /sandboxes/{sandboxID}/timeout, in seconds from now. 0: the time is over at once. */
export const SandboxTimeout = Type.Object({ timeout: int32({ minimum: 0 }) }, { $id: 'SandboxTimeout' });

/** The most by which one refresh extends a sandbox's time. */
const refreshSecondsMax = 3600;
/** Body of POST /sandboxes/{sandboxID}/refreshes, seconds from now. It never shortens the time. */
export const SandboxRefresh = Type.Object(
  { duration: Type.Optional(int32({ minimum: 0, maximum: refreshSecondsMax, default: defaultTimeoutSeconds.v1 })) },
  { $id: 'SandboxRefresh' },
);

const memory = Type.Optional(Type.Boolean({ description: 'False: start a paused sandbox from its filesystem alone' }));
/** Body of POST /sandboxes/{sandboxID}/connect. `timeout` in seconds. */
export const ConnectSandbox = Type.Object({ timeout: int32({ minimum: 0 }), memory }, { $id: 'ConnectSandbox' });
/** Body of POST /v2/sandboxes/{sandboxID}/connect. `timeout` in seconds. */
export const ConnectSandboxV2 = Type.Object(
  { timeout: Type.Optional(int32({ minimum: 0, default: defaultTimeoutSeconds.v2 })), memory },
  { $id: 'ConnectSandboxV2' },
);
