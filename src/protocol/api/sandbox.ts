import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { SandboxNetworkConfig } from './network.ts';
import { dateTime, freeObject, int32, mapOf, nullable, oneOf, stringMap } from './primitives.ts';

/** `clientID` of every answer: kept for old clients, the same everywhere. */
export const clientId = '6532622b';

export const VolumeMount = Type.Object(
  { name: Type.String({ description: 'Volume name' }), path: Type.String({ description: 'Mount path in the sandbox' }) },
  { $id: 'VolumeMount' },
);
export type VolumeMount = Static<typeof VolumeMount>;

const identity = {
  templateID: Type.String(),
  sandboxID: Type.String(),
  clientID: Type.String({ description: 'Deprecated' }),
  envdVersion: Type.String({ description: 'Version of the in-sandbox agent' }),
};

export const Sandbox = Type.Object(
  {
    ...identity,
    alias: Type.Optional(Type.String()),
    envdAccessToken: Type.Optional(nullable(Type.String({ description: 'Null when the sandbox is not secured' }))),
    trafficAccessToken: Type.Optional(nullable(Type.String({ description: 'Only when public traffic is not allowed' }))),
    domain: Type.Optional(nullable(Type.String({ description: 'Deprecated, null' }))),
  },
  { $id: 'Sandbox' },
);
export type Sandbox = Static<typeof Sandbox>;

const listed = {
  ...identity,
  alias: Type.Optional(Type.String()),
  startedAt: dateTime(),
  endAt: dateTime('Running: when it expires. Paused: when it was paused'),
  cpuCount: int32({ minimum: 1 }),
  memoryMB: int32({ minimum: 128 }),
  diskSizeMB: int32({ minimum: 0 }),
  state: oneOf(['running', 'paused']),
  metadata: Type.Optional(stringMap()),
  volumeMounts: Type.Array(VolumeMount),
};

export const ListedSandbox = Type.Object(listed, { $id: 'ListedSandbox' });
export type ListedSandbox = Static<typeof ListedSandbox>;

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
    }),
  },
  { $id: 'SandboxDetail' },
);
export type SandboxDetail = Static<typeof SandboxDetail>;

const templateID = Type.String({ description: 'Template ID, name or name:tag' });
const createOptions = {
  autoPause: Type.Optional(Type.Boolean({ default: false, description: 'When the time is over: pause instead of kill' })),
  autoPauseMemory: Type.Optional(Type.Boolean({ default: true, description: 'False: an automatic pause keeps the filesystem alone' })),
  autoResume: Type.Optional(Type.Object({ enabled: Type.Optional(Type.Boolean({ default: false })) })),
  secure: Type.Optional(Type.Boolean({ description: 'Require the access token inside the sandbox' })),
  allow_internet_access: Type.Optional(Type.Boolean({ default: true })),
  network: Type.Optional(SandboxNetworkConfig),
  metadata: Type.Optional(stringMap()),
  envVars: Type.Optional(stringMap('Environment of every process in the sandbox')),
  mcp: Type.Optional(freeObject('Recorded only')),
  iam: Type.Optional(
    Type.Object({
      tokens: Type.Optional(mapOf(Type.Object({ audience: Type.String(), tokenType: Type.String() }))),
    }),
  ),
  volumeMounts: Type.Optional(Type.Array(VolumeMount)),
};

/** The default lifetimes, seconds, of `POST /sandboxes` and `POST /v2/sandboxes`. */
export const defaultTimeoutSeconds = { v1: 15, v2: 300 } as const;

export const NewSandbox = Type.Object(
  { templateID, timeout: Type.Optional(int32({ minimum: 1, default: defaultTimeoutSeconds.v1 })), ...createOptions },
  { $id: 'NewSandbox' },
);
export type NewSandbox = Static<typeof NewSandbox>;

export const NewSandboxV2 = Type.Object(
  { templateID, timeout: Type.Optional(int32({ minimum: 1, default: defaultTimeoutSeconds.v2 })), ...createOptions },
  { $id: 'NewSandboxV2' },
);

export const SandboxTimeout = Type.Object({ timeout: int32({ minimum: 0 }) }, { $id: 'SandboxTimeout' });

/** The most by which one refresh extends a sandbox's time. */
export const refreshSecondsMax = 3600;
export const SandboxRefresh = Type.Object(
  { duration: Type.Optional(int32({ minimum: 0, maximum: refreshSecondsMax, default: defaultTimeoutSeconds.v1 })) },
  { $id: 'SandboxRefresh' },
);

const memory = Type.Optional(Type.Boolean({ description: 'False: start a paused sandbox from its filesystem alone' }));
export const ConnectSandbox = Type.Object({ timeout: int32({ minimum: 0 }), memory }, { $id: 'ConnectSandbox' });
export const ConnectSandboxV2 = Type.Object(
  { timeout: Type.Optional(int32({ minimum: 0, default: defaultTimeoutSeconds.v2 })), memory },
  { $id: 'ConnectSandboxV2' },
);
