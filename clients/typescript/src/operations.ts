// Made from the API's document by `node scripts/client.mjs`. Changes here are lost.

import type { Bytes } from './bytes.ts';

/** What requests and answers hold, by the names of the API's document. */
export interface Schemas {
  AdminTeam: {
    teamID: string;
    name: string;
    slug: string;
    limits: Schemas['TeamLimits'];
    /** Nothing is let in */
    banned: boolean;
    /** It may read and delete */
    blocked: boolean;
    /** What its pauses outlive where a request does not say */
    pauseDurability: 'node' | 'cluster';
    /** a time as RFC 3339 has it */
    createdAt: string;
  };
  AdminUser: {
    userID: string;
    name: string;
    email: string | null;
    /** May do what the operator may, when signed in */
    operator: boolean;
    /** a time as RFC 3339 has it */
    createdAt: string;
  };
  AssignTemplateTagsRequest: {
    /** name[:tag] */
    target: string;
    /** at most 100 of them */
    tags: Array<string>;
  };
  AssignedTemplateTags: {
    tags: Array<string>;
    buildID: string;
  };
  AuditEntry: {
    id: string;
    /** a time as RFC 3339 has it */
    timestamp: string;
    /** operationId of the request, or `cli.…` for a command on the machine */
    operation: string;
    /** What was changed, as kind:ID; empty when there is nothing to name */
    target: string;
    actor: {
      kind: 'apiKey' | 'user' | 'admin' | 'local' | 'none';
      id: string | null;
    };
    teamID: string | null;
    /** Where the request came from */
    address: string;
    /** How it was answered; 5xx may have changed something */
    status: number;
    before: Record<string, unknown> | null;
    after: Record<string, unknown> | null;
  };
  BuildLogEntry: {
    /** a time as RFC 3339 has it */
    timestamp: string;
    level: 'debug' | 'info' | 'warn' | 'error';
    message: string;
    step?: string | undefined;
  };
  ClusterInvite: {
    /** For `atoll node --token`; good once, for an hour */
    token: string;
    /** a time as RFC 3339 has it */
    expiresAt: string;
  };
  ClusterJoin: {
    /** at most 64 characters */
    tokenID: string;
    /** at most 64 characters */
    nodeID: string;
    /** `host:port` at which control reaches the machine; at most 300 characters */
    address: string;
    /** PEM of a public key on the curve P-256; at most 2000 characters */
    publicKey: string;
    /** Of a machine that has joined before: nobody else may join under its ID */
    known?: {
      /** PEM of the certificate that it has; at most 4000 characters */
      certificate: string;
      /** Signature by the key of that certificate, base64; at most 200 characters */
      proof: string;
    } | undefined;
    /** What the machine is: one of another architecture, release or time is refused */
    machine?: {
      /** at most 64 characters */
      release: string;
      /** As its kernel names it, e.g. `x86_64`; at most 64 characters */
      architecture: string;
      /** What its clock shows, milliseconds since 1970 */
      nowMs: number;
    } | undefined;
    /** HMAC-SHA-256, hexadecimal; at most 64 characters */
    proof: string;
  };
  ClusterJoinPod: {
    /** Of the pod's service account, for the audience `atoll`; at most 8192 characters */
    token: string;
    /** at most 64 characters */
    nodeID: string;
    /** `host:port` at which control reaches the machine; at most 300 characters */
    address: string;
    /** PEM of a public key on the curve P-256; at most 2000 characters */
    publicKey: string;
    /** Of a machine that has joined before: nobody else may join under its ID */
    known?: {
      /** PEM of the certificate that it has; at most 4000 characters */
      certificate: string;
      /** Signature by the key of that certificate, base64; at most 200 characters */
      proof: string;
    } | undefined;
    /** What the machine is: one of another architecture, release or time is refused */
    machine?: {
      /** at most 64 characters */
      release: string;
      /** As its kernel names it, e.g. `x86_64`; at most 64 characters */
      architecture: string;
      /** What its clock shows, milliseconds since 1970 */
      nowMs: number;
    } | undefined;
  };
  ClusterJoined: {
    /** PEM, for the key that was sent */
    certificate: string;
    /** PEM of the cluster's authority */
    authority: string;
    /** HMAC-SHA-256, hexadecimal, by which the machine knows who answers */
    proof: string;
  };
  ClusterPodJoined: {
    /** PEM, for the key that was sent */
    certificate: string;
    /** PEM of the cluster's authority */
    authority: string;
  };
  ConnectSandbox: {
    /** at least 0 */
    timeout: number;
    /** False: start a paused sandbox from its filesystem alone */
    memory?: boolean | undefined;
  };
  ConnectSandboxV2: {
    /** at least 0, default 300 */
    timeout?: number | undefined;
    /** False: start a paused sandbox from its filesystem alone */
    memory?: boolean | undefined;
  };
  CreatedAccessToken: {
    id: string;
    name: string;
    /** Shown this once */
    token: string;
    mask: Schemas['IdentifierMaskingDetails'];
    /** a time as RFC 3339 has it */
    createdAt: string;
  };
  CreatedInvitation: {
    invitationID: string;
    /** Behind the origin of the platform; shown this once */
    path: string;
    /** a time as RFC 3339 has it */
    expiresAt: string;
  };
  CreatedTeamAPIKey: {
    id: string;
    name: string;
    mask: Schemas['IdentifierMaskingDetails'];
    /** a time as RFC 3339 has it */
    createdAt: string;
    createdBy?: {
      id: string;
      email: string | null;
    } | null | undefined;
    lastUsed?: string | null | undefined;
    /** Shown this once */
    key: string;
  };
  CreatedWebhook: {
    id: string;
    teamId: string;
    name: string;
    url: string;
    enabled: boolean;
    events: Array<string>;
    /** The last try of a delivery failed */
    failing: boolean;
    /** a time as RFC 3339 has it */
    createdAt: string;
    /** a time as RFC 3339 has it */
    updatedAt: string;
    /** Where none was given: the one that was made. Shown this once */
    signatureSecret?: string | undefined;
  };
  DeleteTemplateTagsRequest: {
    name: string;
    /** at most 100 of them */
    tags: Array<string>;
  };
  DiskMetrics: {
    mountPoint: string;
    device: string;
    filesystemType: string;
    /** at least 0 */
    usedBytes: number;
    /** at least 0 */
    totalBytes: number;
  };
  /** What is on the machine's disk alone, and is lost with it */
  DrainedKept: {
    /** Paused ones that are not in the store; at least 0 */
    sandboxes: number;
    /** Those without a copy in the store; at least 0 */
    volumes: number;
  };
  DrainedSandbox: {
    sandboxID: string;
    teamID: string;
    templateID: string;
    /** Why it can't go in this way; absent where it can */
    reason?: string | undefined;
  };
  DrainedVolume: {
    volumeID: string;
    teamID: string;
    name: string;
    /** Why it can't be moved; absent where it can */
    reason?: string | undefined;
  };
  EgressProxy: {
    /** host:port of a SOCKS5 proxy */
    address: string;
    username?: string | undefined;
    /** Never returned */
    password?: string | undefined;
    tls?: {
      /** True is refused: the proxy is spoken to without TLS */
      enabled?: false | undefined;
      /** Without effect while TLS is not enabled */
      serverName?: string | undefined;
      /** Without effect while TLS is not enabled */
      caCert?: string | undefined;
    } | undefined;
  };
  Error: {
    /** Always the HTTP status */
    code: number;
    message: string;
    /** Machine-readable detail */
    error_code?: string | undefined;
  };
  Examination: {
    /** a time as RFC 3339 has it */
    examinedAt: string;
    findings: Array<Schemas['HostFinding']>;
  };
  FromImageRegistry: {
    type: 'registry';
    username: string;
    password: string;
  } | {
    type: 'aws';
    awsAccessKeyId: string;
    awsSecretAccessKey: string;
    awsRegion: string;
  } | {
    type: 'gcp';
    serviceAccountJson: string;
  };
  HostFinding: {
    /** Short and stable: programs select by it */
    name: string;
    status: 'ok' | 'limited' | 'missing';
    /** What was seen */
    detail: string;
    /** No sandbox can run without it */
    needed: boolean;
    /** What to do, where something is to be done */
    remedy?: string | undefined;
  };
  IdentifierMaskingDetails: {
    prefix: string;
    /** Without the prefix; at least 0 */
    valueLength: number;
    maskedValuePrefix: string;
    maskedValueSuffix: string;
  };
  InstallationOverview: {
    /** When the process that answers started; it knows nothing from before; a time as RFC 3339 has it */
    since: string;
    /** Creates and forks of sandboxes in the last hour */
    creates: {
      /** at least 0 */
      succeeded: number;
      /** Through no fault of the caller's; at least 0 */
      failed: number;
      p50Seconds: number | null;
      p99Seconds: number | null;
      /** Why those that failed did, the most frequent first */
      causes: Array<{
        /** `error_code`, or the code */
        cause: string;
        /** at least 1 */
        count: number;
      }>;
    };
    /** What keeps the standing truths: its last round */
    reconcilers: Array<{
      name: string;
      /** a time as RFC 3339 has it */
      lastRunAt: string;
      lastResult: 'ok' | 'failed';
      /** at least 0 */
      runs: number;
      /** at least 0 */
      failures: number;
      lastFailedAt: string | null;
    }>;
    disks: Array<{
      nodeID: string;
      mountPoint: string;
      /** Bytes; at least 0 */
      usedBytes: number;
      /** Bytes; at least 0 */
      totalBytes: number;
      fullAt: string | null;
    }>;
  };
  Invitation: {
    invitationID: string;
    role: 'viewer' | 'developer' | 'admin';
    /** For whom it is, in the words of who made it */
    note: string;
    /** a time as RFC 3339 has it */
    createdAt: string;
    /** a time as RFC 3339 has it */
    expiresAt: string;
  };
  InvitedAccount: {
    /** at most 64 characters */
    invitation: string;
    /** at least 1 characters, at most 128 characters */
    name: string;
    /** at most 254 characters */
    email: string;
    /** at least 12 characters, at most 200 characters */
    password: string;
  };
  JoinTeam: {
    /** at most 64 characters */
    invitation: string;
  };
  LifecycleEvent: {
    version: 'v2';
    /** The same in every delivery of the event */
    id: string;
    type: 'sandbox.lifecycle.created' | 'sandbox.lifecycle.updated' | 'sandbox.lifecycle.paused' | 'sandbox.lifecycle.resumed' | 'sandbox.lifecycle.checkpointed' | 'sandbox.lifecycle.forked' | 'sandbox.lifecycle.disk_failed' | 'sandbox.lifecycle.killed' | 'build.lifecycle.created' | 'build.lifecycle.started' | 'build.lifecycle.ready' | 'build.lifecycle.failed' | 'volume.lifecycle.created' | 'volume.lifecycle.deleted';
    /** a time as RFC 3339 has it */
    timestamp: string;
    eventData: Record<string, unknown> | null;
    event_data: Record<string, unknown> | null;
    event_category: 'lifecycle';
    event_label: string;
    sandboxId?: string | undefined;
    sandbox_id?: string | undefined;
    sandboxExecutionId?: string | undefined;
    sandbox_execution_id?: string | undefined;
    sandboxTemplateId?: string | undefined;
    sandbox_template_id?: string | undefined;
    sandboxBuildId?: string | undefined;
    sandbox_build_id?: string | undefined;
    sandboxTeamId?: string | undefined;
    sandbox_team_id?: string | undefined;
    teamId: string;
    subject: {
      kind: 'sandbox' | 'build' | 'volume';
      id: string;
    };
  };
  ListedSandbox: {
    templateID: string;
    sandboxID: string;
    /** Deprecated */
    clientID: string;
    /** Version of the in-sandbox agent */
    envdVersion: string;
    alias?: string | undefined;
    /** The node that runs it, or keeps what is paused */
    nodeID: string;
    /** a time as RFC 3339 has it */
    startedAt: string;
    /** Running: when it expires. Paused: when it was paused; a time as RFC 3339 has it */
    endAt: string;
    /** at least 1 */
    cpuCount: number;
    /** at least 128 */
    memoryMB: number;
    /** at least 0 */
    diskSizeMB: number;
    state: 'running' | 'paused';
    /** What is being done with it at this moment; absent while nothing is. Atoll only */
    transition?: 'pausing' | 'resuming' | 'snapshotting' | 'moving' | undefined;
    metadata?: Record<string, string> | undefined;
    volumeMounts: Array<Schemas['VolumeMount']>;
    /** Of a paused sandbox: whether its memory was kept with its files, or its files alone */
    pauseMode?: 'full' | 'filesystem' | undefined;
    /** Of a paused sandbox, true: its agent did not answer when its memory was kept. It is resumed with memory: false, without that memory; else 409, sandbox_snapshot_guest_agent_unresponsive */
    envdUnresponsiveAtPause?: boolean | undefined;
    /** Of a paused sandbox: node: it is on its machine alone; cluster: it outlives that. Atoll only */
    durability?: 'node' | 'cluster' | undefined;
  };
  ListedSession: {
    sessionID: string;
    /** The one that asks */
    current: boolean;
    /** a time as RFC 3339 has it */
    createdAt: string;
    /** a time as RFC 3339 has it */
    lastUsedAt: string;
    address: string;
    userAgent: string;
  };
  MaxTeamMetric: {
    /** The same as timestampUnix; a time as RFC 3339 has it */
    timestamp: string;
    /** Seconds; at least 0 */
    timestampUnix: number;
    /** at least 0 */
    value: number;
  };
  Member: {
    userID: string;
    name: string;
    email: string | null;
    role: 'viewer' | 'developer' | 'admin';
    /** a time as RFC 3339 has it */
    since: string;
  };
  MemberChange: {
    role: 'viewer' | 'developer' | 'admin';
  };
  NetworkQuestion: {
    /** An address, or the name of a host; at least 1 characters, at most 253 characters */
    host: string;
    allow_internet_access?: boolean | undefined;
    /** Addresses, CIDR blocks and domain names that may be reached in spite of denyOut; at most 4096 of them */
    allowOut?: Array<string> | undefined;
    /** Addresses and CIDR blocks that may not be reached; at most 4096 of them */
    denyOut?: Array<string> | undefined;
  };
  NetworkRule: {
    transform?: {
      /** Headers set on requests to the domain */
      headers?: Record<string, string> | undefined;
    } | undefined;
  };
  NetworkVerdict: {
    verdict: 'passes' | 'denied' | 'depends';
    /** The rule that decides, as logs name it */
    rule: string;
  };
  NewAccessToken: {
    /** at least 1 characters, at most 128 characters */
    name: string;
  };
  NewAccount: {
    /** at least 1 characters, at most 128 characters */
    name: string;
    /** at most 254 characters */
    email: string;
    /** at least 12 characters, at most 200 characters */
    password: string;
  };
  NewInvitation: {
    role: 'viewer' | 'developer' | 'admin';
    /** at most 200 characters */
    note?: string | undefined;
  };
  NewPassword: {
    /** at least 12 characters, at most 200 characters */
    password: string;
  };
  NewSandbox: {
    /** Template ID, name or name:tag */
    templateID: string;
    /** at least 1, default 15 */
    timeout?: number | undefined;
    /** When the time is over: pause instead of kill; default false */
    autoPause?: boolean | undefined;
    /** False: an automatic pause keeps the filesystem alone; default true */
    autoPauseMemory?: boolean | undefined;
    /** What an automatic pause is to outlive. With cluster, one that can not be stored stays on its machine */
    autoPauseDurability?: 'node' | 'cluster' | undefined;
    autoResume?: {
      /** default false */
      enabled?: boolean | undefined;
    } | undefined;
    /** Require the access token inside the sandbox */
    secure?: boolean | undefined;
    /** default true */
    allow_internet_access?: boolean | undefined;
    network?: Schemas['SandboxNetworkConfig'] | undefined;
    /** What lists show and can look for: up to 256 pairs, and 256 KiB as JSON */
    metadata?: Record<string, string> | undefined;
    /** Environment of every process in the sandbox */
    envVars?: Record<string, string> | undefined;
    /** Recorded only; up to 64 KiB */
    mcp?: Record<string, unknown> | undefined;
    iam?: {
      tokens?: Record<string, {
        audience: string;
        tokenType: string;
      }> | undefined;
    } | undefined;
    volumeMounts?: Array<Schemas['VolumeMount']> | undefined;
  };
  NewSandboxV2: {
    /** Template ID, name or name:tag */
    templateID: string;
    /** at least 1, default 300 */
    timeout?: number | undefined;
    /** When the time is over: pause instead of kill; default false */
    autoPause?: boolean | undefined;
    /** False: an automatic pause keeps the filesystem alone; default true */
    autoPauseMemory?: boolean | undefined;
    /** What an automatic pause is to outlive. With cluster, one that can not be stored stays on its machine */
    autoPauseDurability?: 'node' | 'cluster' | undefined;
    autoResume?: {
      /** default false */
      enabled?: boolean | undefined;
    } | undefined;
    /** Require the access token inside the sandbox */
    secure?: boolean | undefined;
    /** default true */
    allow_internet_access?: boolean | undefined;
    network?: Schemas['SandboxNetworkConfig'] | undefined;
    /** What lists show and can look for: up to 256 pairs, and 256 KiB as JSON */
    metadata?: Record<string, string> | undefined;
    /** Environment of every process in the sandbox */
    envVars?: Record<string, string> | undefined;
    /** Recorded only; up to 64 KiB */
    mcp?: Record<string, unknown> | undefined;
    iam?: {
      tokens?: Record<string, {
        audience: string;
        tokenType: string;
      }> | undefined;
    } | undefined;
    volumeMounts?: Array<Schemas['VolumeMount']> | undefined;
  };
  NewSecret: {
    /** 1 to 128 of letters, digits, "-" and "_"; lower-cased; not sec_… */
    name: string;
    /** Never returned; at least 1 characters */
    value: string;
    metadata?: Record<string, string> | undefined;
  };
  NewSecretVersion: {
    /** Never returned; at least 1 characters */
    value: string;
    metadata?: Record<string, string> | undefined;
  };
  NewSignInLink: {
    /** Whom it signs in; default: the operator */
    userID?: string | undefined;
  };
  NewSnapshot: {
    /** [namespace/]name[:tag]; a name that the team has gets a further build */
    name?: string | undefined;
    /** False: keep the files alone; sandboxes made from it boot from them; default true */
    memory?: boolean | undefined;
  };
  NewTeam: {
    /** at least 1 characters, at most 128 characters */
    name: string;
    /** Namespace of the team's templates; never changes; at least 1 characters, at most 64 characters */
    slug: string;
    limits?: Schemas['TeamLimits'] | undefined;
  };
  NewTeamAPIKey: {
    /** at least 1 characters, at most 128 characters */
    name: string;
  };
  NewUser: {
    /** at least 1 characters, at most 128 characters */
    name: string;
    /** at most 254 characters */
    email?: string | undefined;
  };
  NewVolume: {
    /** at least 1 characters, at most 128 characters */
    name: string;
  };
  NewWebhook: {
    /** at least 1 characters, at most 128 characters */
    name: string;
    /** http: or https:, without user and password; at most 2048 characters */
    url: string;
    /** Which events are delivered */
    events: Array<'sandbox.lifecycle.created' | 'sandbox.lifecycle.updated' | 'sandbox.lifecycle.paused' | 'sandbox.lifecycle.resumed' | 'sandbox.lifecycle.checkpointed' | 'sandbox.lifecycle.forked' | 'sandbox.lifecycle.disk_failed' | 'sandbox.lifecycle.killed' | 'build.lifecycle.created' | 'build.lifecycle.started' | 'build.lifecycle.ready' | 'build.lifecycle.failed' | 'volume.lifecycle.created' | 'volume.lifecycle.deleted'>;
    /** default true */
    enabled?: boolean | undefined;
    /** What deliveries are signed with. Never returned; at least 16 characters, at most 256 characters */
    signatureSecret?: string | undefined;
  };
  Node: {
    id: string;
    serviceInstanceID: string;
    clusterID: string;
    status: 'ready' | 'draining' | 'connecting' | 'unhealthy' | 'standby';
    /** a time as RFC 3339 has it */
    statusChangedAt: string;
    /** at least 0 */
    sandboxCount: number;
    /** Creates and forks, since the platform started; at least 0 */
    createSuccesses: number;
    /** Creates and forks that failed through no fault of the caller's, since the platform started; at least 0 */
    createFails: number;
    version: string;
    commit: string;
    machineInfo: {
      cpuFamily: string;
      cpuModel: string;
      cpuModelName: string;
      cpuArchitecture: string;
    };
    metrics: Schemas['NodeMetrics'];
    /** Whether pauses keep memory, by its default driver. Absent while it does not answer. Atoll only */
    keepsMemory?: {
      kept: boolean;
      /** Why it is not */
      reason?: string | undefined;
    } | undefined;
    /** Its pool of started sandboxes. Absent where it keeps none. Atoll only */
    pool?: {
      /** Started ones that it keeps; at least 0 */
      size: number;
      /** Those that wait now; at least 0 */
      ready: number;
      /** Creates that found one, since the node started; at least 0 */
      hits: number;
      /** Creates that found none; at least 0 */
      misses: number;
    } | undefined;
    /** What its operator says of it (`ATOLL_NODE_LABELS`). Atoll only */
    labels?: Record<string, string> | undefined;
    /** at least 0 */
    sandboxStartingCount: number;
  };
  NodeDetail: {
    id: string;
    serviceInstanceID: string;
    clusterID: string;
    status: 'ready' | 'draining' | 'connecting' | 'unhealthy' | 'standby';
    /** a time as RFC 3339 has it */
    statusChangedAt: string;
    /** at least 0 */
    sandboxCount: number;
    /** Creates and forks, since the platform started; at least 0 */
    createSuccesses: number;
    /** Creates and forks that failed through no fault of the caller's, since the platform started; at least 0 */
    createFails: number;
    version: string;
    commit: string;
    machineInfo: {
      cpuFamily: string;
      cpuModel: string;
      cpuModelName: string;
      cpuArchitecture: string;
    };
    metrics: Schemas['NodeMetrics'];
    /** Whether pauses keep memory, by its default driver. Absent while it does not answer. Atoll only */
    keepsMemory?: {
      kept: boolean;
      /** Why it is not */
      reason?: string | undefined;
    } | undefined;
    /** Its pool of started sandboxes. Absent where it keeps none. Atoll only */
    pool?: {
      /** Started ones that it keeps; at least 0 */
      size: number;
      /** Those that wait now; at least 0 */
      ready: number;
      /** Creates that found one, since the node started; at least 0 */
      hits: number;
      /** Creates that found none; at least 0 */
      misses: number;
    } | undefined;
    /** What its operator says of it (`ATOLL_NODE_LABELS`). Atoll only */
    labels?: Record<string, string> | undefined;
  };
  NodeDrain: {
    nodeID: string;
    mode: 'none' | 'wait' | 'pause' | 'move';
    /** Those that use the machine, the ones that can not go first */
    sandboxes: Array<Schemas['DrainedSandbox']>;
    /** Of a drain by moves: those that are on the machine, the ones that can not go first */
    volumes: Array<Schemas['DrainedVolume']>;
    kept: Schemas['DrainedKept'];
  };
  NodeDrainStart: {
    mode: 'wait' | 'pause' | 'move';
  };
  NodeForgotten: {
    nodeID: string;
    /** What only the machine had */
    lost: {
      /** Running and paused ones; at least 0 */
      sandboxes: number;
      /** Those without a copy in the store; at least 0 */
      volumes: number;
    };
    /** Paused sandboxes that are in the store: they go on elsewhere; at least 0 */
    stored: number;
  };
  NodeMetric: {
    /** The same as timestampUnix; a time as RFC 3339 has it */
    timestamp: string;
    /** Seconds; at least 0 */
    timestampUnix: number;
    /** Over all CPUs; at least 0, at most 100 */
    cpuPercent: number;
    /** Bytes; at least 0 */
    memoryUsedBytes: number;
    /** Bytes; at least 0 */
    memoryTotalBytes: number;
    disks: Array<{
      mountPoint: string;
      /** Bytes; at least 0 */
      usedBytes: number;
      /** Bytes; at least 0 */
      totalBytes: number;
    }>;
  };
  NodeMetrics: {
    /** CPUs promised to sandboxes; at least 0 */
    allocatedCPU: number;
    /** at least 0 */
    cpuCount: number;
    /** at least 0, at most 100 */
    cpuPercent: number;
    /** Memory promised to sandboxes; at least 0 */
    allocatedMemoryBytes: number;
    /** at least 0 */
    memoryUsedBytes: number;
    /** at least 0 */
    memoryTotalBytes: number;
    /** at least 0 */
    hugePagesTotal: number;
    /** at least 0 */
    hugePagesUsed: number;
    /** at least 0 */
    hugePagesReserved: number;
    /** at least 0 */
    hugePageSizeBytes: number;
    disks: Array<Schemas['DiskMetrics']>;
  };
  NodeStatusChange: {
    status: 'ready' | 'draining' | 'connecting' | 'unhealthy' | 'standby';
    clusterID?: string | undefined;
  };
  OrphanSandbox: {
    sandboxID: string;
    nodeID: string;
    /** Absent where the node can't read its record; then it can be removed and not adopted */
    templateID?: string | undefined;
    /** a time as RFC 3339 has it */
    setAsideAt: string;
    reason: string;
  };
  OrphanVolume: {
    volumeID: string;
    nodeID: string;
    /** a time as RFC 3339 has it */
    createdAt: string;
  };
  Orphans: {
    sandboxes: Array<Schemas['OrphanSandbox']>;
    volumes: Array<Schemas['OrphanVolume']>;
    /** The nodes that did not answer, and may keep more; absent where all have */
    unansweredNodeIDs?: Array<string> | undefined;
  };
  ProviderSignIn: {
    /** SHA-256, hex, of a secret that the page keeps */
    binding: string;
  };
  ProviderUrl: {
    url: string;
  };
  RestoredVolume: {
    volumeID: string;
    name: string;
    /** What was written to it later is lost; a time as RFC 3339 has it */
    copiedAt: string;
    /** How old the copy was; at least 0 */
    ageSeconds: number;
  };
  Sandbox: {
    templateID: string;
    sandboxID: string;
    /** Deprecated */
    clientID: string;
    /** Version of the in-sandbox agent */
    envdVersion: string;
    alias?: string | undefined;
    envdAccessToken?: string | null | undefined;
    trafficAccessToken?: string | null | undefined;
    domain?: string | null | undefined;
  };
  SandboxAdoption: {
    /** Who has it from now on */
    teamID: string;
  };
  SandboxDetail: {
    templateID: string;
    sandboxID: string;
    /** Deprecated */
    clientID: string;
    /** Version of the in-sandbox agent */
    envdVersion: string;
    alias?: string | undefined;
    /** The node that runs it, or keeps what is paused */
    nodeID: string;
    /** a time as RFC 3339 has it */
    startedAt: string;
    /** Running: when it expires. Paused: when it was paused; a time as RFC 3339 has it */
    endAt: string;
    /** at least 1 */
    cpuCount: number;
    /** at least 128 */
    memoryMB: number;
    /** at least 0 */
    diskSizeMB: number;
    state: 'running' | 'paused';
    /** What is being done with it at this moment; absent while nothing is. Atoll only */
    transition?: 'pausing' | 'resuming' | 'snapshotting' | 'moving' | undefined;
    metadata?: Record<string, string> | undefined;
    volumeMounts: Array<Schemas['VolumeMount']>;
    /** Of a paused sandbox: whether its memory was kept with its files, or its files alone */
    pauseMode?: 'full' | 'filesystem' | undefined;
    /** Of a paused sandbox, true: its agent did not answer when its memory was kept. It is resumed with memory: false, without that memory; else 409, sandbox_snapshot_guest_agent_unresponsive */
    envdUnresponsiveAtPause?: boolean | undefined;
    /** Of a paused sandbox: node: it is on its machine alone; cluster: it outlives that. Atoll only */
    durability?: 'node' | 'cluster' | undefined;
    envdAccessToken?: string | undefined;
    allowInternetAccess?: boolean | null | undefined;
    domain?: string | null | undefined;
    network?: Schemas['SandboxNetworkConfig'] | undefined;
    lifecycle: {
      autoResume: boolean;
      onTimeout: 'kill' | 'pause';
      /** Of the pause when the time is over. Atoll only */
      durability?: 'node' | 'cluster' | undefined;
    };
  };
  SandboxFork: {
    /** at least 1, default 15 */
    timeout?: number | undefined;
    /** at least 1, at most 100, default 1 */
    count?: number | undefined;
  };
  /** One of both */
  SandboxForkResult: {
    sandbox?: Schemas['Sandbox'] | undefined;
    error?: Schemas['Error'] | undefined;
  };
  SandboxLog: {
    /** a time as RFC 3339 has it */
    timestamp: string;
    /** A JSON object with level, logger, message and the fields of the entry */
    line: string;
  };
  SandboxLogEntry: {
    /** a time as RFC 3339 has it */
    timestamp: string;
    message: string;
    level: 'debug' | 'info' | 'warn' | 'error';
    /** What the entry is about (logger), and its parts */
    fields: Record<string, string>;
  };
  SandboxLogs: {
    logs: Array<Schemas['SandboxLog']>;
    logEntries: Array<Schemas['SandboxLogEntry']>;
    /** A machine that has some of it is out of reach now: there may be more */
    partial?: boolean | undefined;
  };
  SandboxLogsV2Response: {
    logs: Array<Schemas['SandboxLogEntry']>;
    /** A machine that has some of it is out of reach now: there may be more */
    partial?: boolean | undefined;
  };
  SandboxMetric: {
    /** The same as timestampUnix; a time as RFC 3339 has it */
    timestamp: string;
    /** Seconds; at least 0 */
    timestampUnix: number;
    /** at least 1 */
    cpuCount: number;
    /** Over all CPUs of the sandbox; at least 0, at most 100 */
    cpuUsedPct: number;
    /** Bytes, without memCache; at least 0 */
    memUsed: number;
    /** Bytes; at least 0 */
    memTotal: number;
    /** Bytes of files that are kept in memory while there is room; at least 0 */
    memCache: number;
    /** Bytes; at least 0 */
    diskUsed: number;
    /** Bytes; at least 0 */
    diskTotal: number;
  };
  SandboxNetworkConfig: {
    /** False: every port but the agent's needs the traffic token. Default true */
    allowPublicTraffic?: boolean | undefined;
    /** Addresses, CIDR blocks and domain names that may be reached in spite of denyOut; at most 4096 of them */
    allowOut?: Array<string> | undefined;
    /** Addresses and CIDR blocks that may not be reached; at most 4096 of them */
    denyOut?: Array<string> | undefined;
    egressProxy?: Schemas['EgressProxy'] | undefined;
    /** Others than those of the installation are refused; at most 0 of them */
    dnsServers?: Array<string> | undefined;
    /** Host that services in the sandbox see; ${PORT} is the requested port */
    maskRequestHost?: string | undefined;
    /** Header rules by domain */
    rules?: Record<string, Array<Schemas['NetworkRule']>> | undefined;
    /** Ports whose service in the sandbox speaks TLS; at most 64 of them */
    httpsPorts?: Array<number> | undefined;
  };
  SandboxNetworkUpdate: {
    /** Addresses, CIDR blocks and domain names that may be reached in spite of denyOut; at most 4096 of them */
    allowOut?: Array<string> | undefined;
    /** Addresses and CIDR blocks that may not be reached; at most 4096 of them */
    denyOut?: Array<string> | undefined;
    egressProxy?: Schemas['EgressProxy'] | undefined;
    /** Others than those of the installation are refused; at most 0 of them */
    dnsServers?: Array<string> | undefined;
    /** Header rules by domain */
    rules?: Record<string, Array<Schemas['NetworkRule']>> | undefined;
    allow_internet_access?: boolean | undefined;
  };
  SandboxPause: {
    /** False: keep the files alone; a resume boots from them; default true */
    memory?: boolean | undefined;
    /** cluster: answer when it outlives its machine, too. Absent: as the team has it. Atoll only */
    durability?: 'node' | 'cluster' | undefined;
    /** True: 503, and it runs on, where the agent inside does not answer within a few seconds; so it is with memory: false in any case. Else such a pause is marked: envdUnresponsiveAtPause; default false */
    requireHealthyGuest?: boolean | undefined;
  };
  SandboxRefresh: {
    /** at least 0, at most 3600, default 15 */
    duration?: number | undefined;
  };
  SandboxResume: {
    /** at least 1, default 15 */
    timeout?: number | undefined;
    /** When the time is over: pause instead of kill */
    autoPause?: boolean | undefined;
    /** False: boot from the files alone; default true */
    memory?: boolean | undefined;
  };
  SandboxTimeout: {
    /** at least 0 */
    timeout: number;
  };
  SandboxTraffic: {
    /** What the sandbox has sent by itself; at least 0 */
    bytesOut: number;
    /** What it has received; at least 0 */
    bytesIn: number;
    /** Packets and connections that its network policy refused; at least 0 */
    denied: number;
  };
  SandboxesWithMetrics: {
    /** The latest metric of each sandbox that has one, by ID */
    sandboxes: Record<string, Schemas['SandboxMetric']>;
    /** The machine of some of them is out of reach now: those are left out */
    partial?: boolean | undefined;
  };
  Secret: {
    secretID: string;
    name: string;
    /** at least 1 */
    currentVersion: number;
    metadata: Record<string, string>;
    /** a time as RFC 3339 has it */
    createdAt: string;
    /** a time as RFC 3339 has it */
    updatedAt: string;
  };
  Session: {
    sessionID: string;
    user: {
      id: string;
      name: string;
      email: string | null;
      hasPassword: boolean;
    } | null;
    /** May do what the operator may */
    operator: boolean;
    /** An operator acts for any team */
    teams: Array<Schemas['SessionTeam']>;
    /** However much it is used; a time as RFC 3339 has it */
    expiresAt: string;
  };
  SessionProof: {
    /** Of a sign-in link; at most 64 characters */
    code?: string | undefined;
    /** Of a user; at most 200 characters */
    accessToken?: string | undefined;
    /** at most 200 characters */
    password?: string | undefined;
  };
  SessionTeam: {
    teamID: string;
    name: string;
    slug: string;
    role: 'viewer' | 'developer' | 'admin';
  };
  ShownSetting: {
    /** The variable */
    name: string;
    value: string | null;
    source: 'environment' | 'settings file' | 'default';
  };
  ShownSettings: {
    /** The settings file */
    file: string;
    settings: Array<Schemas['ShownSetting']>;
  };
  SignIn: {
    /** Of a sign-in link; at most 64 characters */
    code?: string | undefined;
    /** Of a user; at most 200 characters */
    accessToken?: string | undefined;
    /** at most 254 characters */
    email?: string | undefined;
    /** at most 200 characters */
    password?: string | undefined;
    provider?: {
      /** Of the URL, without "?"; at most 8192 characters */
      query: string;
      /** Whose digest began it; at most 128 characters */
      secret: string;
    } | undefined;
  };
  SignInLink: {
    /** Behind the origin of the platform */
    path: string;
    /** a time as RFC 3339 has it */
    expiresAt: string;
  };
  SignInProvider: {
    name: string | null;
  };
  SnapshotInfo: {
    /** What a create takes as templateID: namespace/name:tag, or templateID:tag */
    snapshotID: string;
    names: Array<string>;
  };
  StuckSandbox: {
    sandboxID: string;
    teamID: string;
    nodeID: string;
    state: 'starting' | 'running' | 'pausing' | 'paused' | 'resuming' | 'snapshotting' | 'moving' | 'killing';
    /** Seen in this state since then; it may have been so before; a time as RFC 3339 has it */
    since: string;
  };
  Team: {
    teamID: string;
    name: string;
    /** A key made for this answer */
    apiKey: string;
    isDefault: boolean;
  };
  TeamAPIKey: {
    id: string;
    name: string;
    mask: Schemas['IdentifierMaskingDetails'];
    /** a time as RFC 3339 has it */
    createdAt: string;
    createdBy?: {
      id: string;
      email: string | null;
    } | null | undefined;
    lastUsed?: string | null | undefined;
  };
  TeamChange: {
    /** at least 1 characters, at most 128 characters */
    name?: string | undefined;
    limits?: Schemas['TeamLimitsChange'] | undefined;
    banned?: boolean | undefined;
    blocked?: boolean | undefined;
    /** What its pauses outlive where a request does not say */
    pauseDurability?: 'node' | 'cluster' | undefined;
  };
  TeamLimits: {
    /** Sandboxes at once; at least 0 */
    concurrentSandboxes?: number | undefined;
    /** Template builds at once; at least 0 */
    concurrentBuilds?: number | undefined;
    /** Sandboxes, running and paused; at least 0 */
    sandboxes?: number | undefined;
    /** Templates, snapshots apart; at least 0 */
    templates?: number | undefined;
    /** Builds of templates that are kept; the oldest that failed make room; at least 0 */
    builds?: number | undefined;
    /** Snapshots that are kept; at least 0 */
    snapshots?: number | undefined;
    /** Longest life of one run of a sandbox; at least 0 */
    lifetimeHours?: number | undefined;
    /** CPUs of a sandbox; at least 0 */
    cpuCount?: number | undefined;
    /** Memory of a sandbox; at least 0 */
    memoryMiB?: number | undefined;
    /** Disk of a sandbox; at least 0 */
    diskMiB?: number | undefined;
    /** Requests to the API, 16 KiB of a body counting as one more; 0: no limit; at least 0 */
    requestsPerSecond?: number | undefined;
    /** Volumes; 0: none; at least 0 */
    volumes?: number | undefined;
    /** Size of each new volume; at least 16 */
    volumeMiB?: number | undefined;
  };
  /** A member that is absent stays as it is; null: the installation's */
  TeamLimitsChange: {
    concurrentSandboxes?: number | null | undefined;
    concurrentBuilds?: number | null | undefined;
    sandboxes?: number | null | undefined;
    templates?: number | null | undefined;
    builds?: number | null | undefined;
    snapshots?: number | null | undefined;
    lifetimeHours?: number | null | undefined;
    cpuCount?: number | null | undefined;
    memoryMiB?: number | null | undefined;
    diskMiB?: number | null | undefined;
    requestsPerSecond?: number | null | undefined;
    volumes?: number | null | undefined;
    volumeMiB?: number | null | undefined;
  };
  TeamMetric: {
    /** The same as timestampUnix; a time as RFC 3339 has it */
    timestamp: string;
    /** Seconds; at least 0 */
    timestampUnix: number;
    /** The most that ran at a time; at least 0 */
    concurrentSandboxes: number;
    /** Sandboxes created a second; at least 0 */
    sandboxStartRate: number;
    /** For how long sandboxes ran, counted once a minute; at least 0 */
    sandboxSeconds: number;
  };
  TeamUse: {
    limits: {
      /** Sandboxes at once; at least 0 */
      concurrentSandboxes: number;
      /** Template builds at once; at least 0 */
      concurrentBuilds: number;
      /** Sandboxes, running and paused; at least 0 */
      sandboxes: number;
      /** Templates, snapshots apart; at least 0 */
      templates: number;
      /** Builds of templates that are kept; the oldest that failed make room; at least 0 */
      builds: number;
      /** Snapshots that are kept; at least 0 */
      snapshots: number;
      /** Longest life of one run of a sandbox; at least 0 */
      lifetimeHours: number;
      /** CPUs of a sandbox; at least 0 */
      cpuCount: number;
      /** Memory of a sandbox; at least 0 */
      memoryMiB: number;
      /** Disk of a sandbox; at least 0 */
      diskMiB: number;
      /** Requests to the API, 16 KiB of a body counting as one more; 0: no limit; at least 0 */
      requestsPerSecond: number;
      /** Volumes; 0: none; at least 0 */
      volumes: number;
      /** Size of each new volume; at least 16 */
      volumeMiB: number;
    };
    taken: {
      /** at least 0 */
      concurrentSandboxes: number;
      /** at least 0 */
      concurrentBuilds: number;
      /** at least 0 */
      sandboxes: number;
      /** at least 0 */
      templates: number;
      /** at least 0 */
      builds: number;
      /** at least 0 */
      snapshots: number;
      /** at least 0 */
      volumes: number;
    };
  };
  Template: {
    templateID: string;
    /** The newest ready build; the zero UUID when there is none */
    buildID: string;
    /** at least 1 */
    cpuCount: number;
    /** at least 128 */
    memoryMB: number;
    /** at least 0 */
    diskSizeMB: number;
    public: boolean;
    /** Deprecated */
    aliases: Array<string>;
    /** namespace/alias, or the bare alias when it has no namespace */
    names: Array<string>;
    /** a time as RFC 3339 has it */
    createdAt: string;
    /** a time as RFC 3339 has it */
    updatedAt: string;
    lastSpawnedAt: string | null;
    /** at least 0 */
    spawnCount: number;
    createdBy: {
      id: string;
      email: string | null;
    } | null;
    /** at least 0 */
    buildCount: number;
    envdVersion: string;
    buildStatus: 'waiting' | 'building' | 'ready' | 'error';
  };
  TemplateAlias: {
    templateID: string;
    public: boolean;
  };
  TemplateBuild: {
    buildID: string;
    status: 'waiting' | 'building' | 'ready' | 'error';
    /** a time as RFC 3339 has it */
    createdAt: string;
    /** a time as RFC 3339 has it */
    updatedAt: string;
    /** a time as RFC 3339 has it */
    finishedAt?: string | undefined;
    /** at least 1 */
    cpuCount: number;
    /** at least 128 */
    memoryMB: number;
    /** at least 0 */
    diskSizeMB?: number | undefined;
    envdVersion?: string | undefined;
  };
  TemplateBuildFileUpload: {
    /** The files are here already */
    present: boolean;
    /** Where to PUT the archive */
    url?: string | undefined;
    headers?: Record<string, string> | undefined;
  };
  TemplateBuildInfo: {
    templateID: string;
    buildID: string;
    status: 'waiting' | 'building' | 'ready' | 'error';
    /** Deprecated, empty */
    logs: Array<string>;
    logEntries: Array<Schemas['BuildLogEntry']>;
    reason?: {
      message: string;
      /** `base`, `finalize` or the number of a step, from 1 */
      step?: string | undefined;
      logEntries?: Array<Schemas['BuildLogEntry']> | undefined;
    } | undefined;
  };
  TemplateBuildLogsResponse: {
    logs: Array<Schemas['BuildLogEntry']>;
  };
  TemplateBuildRequest: {
    /** at most 1048576 characters */
    dockerfile: string;
    /** Name of the template; at most 128 characters */
    alias?: string | undefined;
    /** Deprecated; must be the team of the credential */
    teamID?: string | undefined;
    /** Run after the build; sandboxes start with it running */
    startCmd?: string | undefined;
    /** Succeeds once what the start command runs is ready. Without one the build waits 20 s where there is a start command */
    readyCmd?: string | undefined;
    /** 1 or even. Default 2; at least 1, at most 32 */
    cpuCount?: number | undefined;
    /** Even. Default 1024; at least 128 */
    memoryMB?: number | undefined;
  };
  TemplateBuildRequestV2: {
    /** Name of the template; at most 128 characters */
    alias: string;
    /** Deprecated; must be the team of the credential */
    teamID?: string | undefined;
    /** 1 or even. Default 2; at least 1, at most 32 */
    cpuCount?: number | undefined;
    /** Even. Default 1024; at least 128 */
    memoryMB?: number | undefined;
  };
  TemplateBuildRequestV3: {
    /** Name of the template, with `:tag` where another than `default` is meant; at most 128 characters */
    name?: string | undefined;
    /** Deprecated: the same as name; at most 128 characters */
    alias?: string | undefined;
    /** at most 100 of them */
    tags?: Array<string> | undefined;
    /** Deprecated; must be the team of the credential */
    teamID?: string | undefined;
    /** 1 or even. Default 2; at least 1, at most 32 */
    cpuCount?: number | undefined;
    /** Even. Default 1024; at least 128 */
    memoryMB?: number | undefined;
    /** Free disk that sandboxes have at least, up to what the team may use; at least 0 */
    minFreeDiskMb?: number | undefined;
  };
  TemplateBuildStartV2: {
    fromImage?: string | undefined;
    fromTemplate?: string | undefined;
    fromImageRegistry?: Schemas['FromImageRegistry'] | undefined;
    /** default false */
    force?: boolean | undefined;
    /** at most 1000 of them */
    steps?: Array<Schemas['TemplateStep']> | undefined;
    startCmd?: string | undefined;
    /** Succeeds once what the start command runs is ready. Without one the build waits 20 s where there is a start command */
    readyCmd?: string | undefined;
  };
  TemplateContent: {
    /** The newest build that is ready */
    buildID: string;
    user: string;
    /** Absent: the home directory of the user */
    workdir?: string | undefined;
    startCommand?: string | undefined;
    readyCommand?: string | undefined;
    layers: Array<{
      digest: string;
      /** Absent where no machine that has it answers; at least 0 */
      sizeBytes?: number | undefined;
      /** Other templates that have it, of the team and those that every team may use */
      sharedBy: Array<{
        templateID: string;
        /** Deprecated */
        aliases: Array<string>;
        /** namespace/alias, or the bare alias when it has no namespace */
        names: Array<string>;
      }>;
    }>;
  };
  TemplateRequestResponseV3: {
    templateID: string;
    buildID: string;
    public: boolean;
    names: Array<string>;
    tags: Array<string>;
    /** Deprecated */
    aliases: Array<string>;
  };
  TemplateStep: {
    /** RUN, COPY, ENV, USER or WORKDIR */
    type: string;
    /** at most 1000 of them */
    args?: Array<string> | undefined;
    /** Of the uploaded files of a COPY */
    filesHash?: string | undefined;
    /** Run this step and all after it, cached or not; default false */
    force?: boolean | undefined;
  };
  TemplateTag: {
    tag: string;
    buildID: string;
    /** a time as RFC 3339 has it */
    createdAt: string;
  };
  TemplateTagAssignment: {
    /** The same for the same tag and build */
    assignmentId: string;
    buildId: string;
    /** a time as RFC 3339 has it */
    assignedAt: string;
    /** a time as RFC 3339 has it */
    buildCreatedAt: string;
    buildFinishedAt: string | null;
  };
  TemplateTagAssignmentsResponse: {
    /** The newest first */
    data: Array<Schemas['TemplateTagAssignment']>;
    nextCursor: string | null;
  };
  TemplateTagExistsResponse: {
    exists: boolean;
    normalizedTag: string;
  };
  TemplateTagGroup: {
    tag: string;
    /** The newest first */
    assignments: Array<Schemas['TemplateTagAssignment']>;
    /** The tag has more assignments */
    hasMore: boolean;
  };
  TemplateTagGroupsResponse: {
    tags: Array<Schemas['TemplateTagGroup']>;
    nextCursor: string | null;
  };
  TemplateTagsCountResponse: {
    /** at least 0 */
    total: number;
  };
  TemplateUpdateRequest: {
    public?: boolean | undefined;
  };
  TemplateUpdateResponse: {
    names: Array<string>;
  };
  TemplateUse: {
    templateID: string;
    /** Those that it has now; none where it is gone */
    names: Array<string>;
    /** Counted once a minute; at least 0 */
    sandboxSeconds: number;
  };
  TemplateWithBuilds: {
    templateID: string;
    public: boolean;
    /** Deprecated */
    aliases: Array<string>;
    /** namespace/alias, or the bare alias when it has no namespace */
    names: Array<string>;
    /** a time as RFC 3339 has it */
    createdAt: string;
    /** a time as RFC 3339 has it */
    updatedAt: string;
    lastSpawnedAt: string | null;
    /** at least 0 */
    spawnCount: number;
    builds: Array<Schemas['TemplateBuild']>;
  };
  UpdateTeamAPIKey: {
    /** at least 1 characters, at most 128 characters */
    name: string;
  };
  UserChange: {
    operator: boolean;
  };
  Volume: {
    volumeID: string;
    name: string;
    /** What it can hold, MiB. Atoll only; at least 1 */
    sizeMB: number;
    /** Sandboxes, running or paused, that have it. Atoll only; at least 0 */
    sandboxCount: number;
    /** When its newest copy in the store of a cluster was begun; absent where there is none; a time as RFC 3339 has it */
    copiedAt?: string | undefined;
  };
  VolumeAndToken: {
    volumeID: string;
    name: string;
    /** For the content of this volume alone */
    token: string;
    /** Where the content is, if elsewhere */
    domain?: string | undefined;
    /** When its newest copy in the store of a cluster was begun; absent where there is none; a time as RFC 3339 has it */
    copiedAt?: string | undefined;
  };
  VolumeEntryChange: {
    /** at least 0, at most 65535 */
    uid?: number | undefined;
    /** at least 0, at most 65535 */
    gid?: number | undefined;
    /** Permission bits; at least 0, at most 4095 */
    mode?: number | undefined;
  };
  VolumeEntryStat: {
    name: string;
    type: 'unknown' | 'file' | 'directory' | 'symlink';
    path: string;
    /** at least 0 */
    size: number;
    /** Permission bits; at least 0 */
    mode: number;
    /** at least 0 */
    uid: number;
    /** at least 0 */
    gid: number;
    /** a time as RFC 3339 has it */
    atime: string;
    /** a time as RFC 3339 has it */
    mtime: string;
    /** a time as RFC 3339 has it */
    ctime: string;
    /** Of a symlink */
    target?: string | undefined;
  };
  VolumeMount: {
    /** Volume name */
    name: string;
    /** Mount path in the sandbox */
    path: string;
  };
  VolumesUse: {
    /** By the ID of the volume */
    volumes: Record<string, {
      /** What it takes on its machine, file system included; at least 0 */
      usedBytes: number;
    }>;
    /** The machine of some of them is out of reach now: those are left out */
    partial?: boolean | undefined;
  };
  Webhook: {
    id: string;
    teamId: string;
    name: string;
    url: string;
    enabled: boolean;
    events: Array<string>;
    /** The last try of a delivery failed */
    failing: boolean;
    /** a time as RFC 3339 has it */
    createdAt: string;
    /** a time as RFC 3339 has it */
    updatedAt: string;
  };
  WebhookDelivery: {
    eventId: string;
    type: 'sandbox.lifecycle.created' | 'sandbox.lifecycle.updated' | 'sandbox.lifecycle.paused' | 'sandbox.lifecycle.resumed' | 'sandbox.lifecycle.checkpointed' | 'sandbox.lifecycle.forked' | 'sandbox.lifecycle.disk_failed' | 'sandbox.lifecycle.killed' | 'build.lifecycle.created' | 'build.lifecycle.started' | 'build.lifecycle.ready' | 'build.lifecycle.failed' | 'volume.lifecycle.created' | 'volume.lifecycle.deleted';
    /** kind:ID of what the event is about */
    subject: string;
    state: 'pending' | 'delivered' | 'dead';
    /** at least 0 */
    attempts: number;
    lastStatus: number | null;
    lastError: string | null;
    nextAttemptAt: string | null;
    finishedAt: string | null;
  };
  WebhookUpdate: {
    /** at least 1 characters, at most 128 characters */
    name?: string | undefined;
    /** http: or https:, without user and password; at most 2048 characters */
    url?: string | undefined;
    /** Which events are delivered */
    events?: Array<'sandbox.lifecycle.created' | 'sandbox.lifecycle.updated' | 'sandbox.lifecycle.paused' | 'sandbox.lifecycle.resumed' | 'sandbox.lifecycle.checkpointed' | 'sandbox.lifecycle.forked' | 'sandbox.lifecycle.disk_failed' | 'sandbox.lifecycle.killed' | 'build.lifecycle.created' | 'build.lifecycle.started' | 'build.lifecycle.ready' | 'build.lifecycle.failed' | 'volume.lifecycle.created' | 'volume.lifecycle.deleted'> | undefined;
    enabled?: boolean | undefined;
    /** What deliveries are signed with. Never returned; at least 16 characters, at most 256 characters */
    signatureSecret?: string | undefined;
  };
}

/** Each operation of the API: what it takes and what it answers. */
export interface Operations {
  /** Add a user to a team */
  adminAddMember: {
    request: {
      teamID: string;
      userID: string;
    };
    answer: void;
  };
  /** Adopt an orphaned sandbox for a team, as a paused one */
  adminAdoptSandbox: {
    request: {
      sandboxID: string;
      body: Schemas['SandboxAdoption'];
    };
    answer: void;
  };
  /** Adopt an orphaned volume for a team */
  adminAdoptVolume: {
    request: {
      volumeID: string;
      teamID: string;
      body: Schemas['NewVolume'];
    };
    answer: void;
  };
  /** Begin to empty a machine; setting its status to ready ends that */
  adminBeginDrain: {
    request: {
      nodeID: string;
      body: Schemas['NodeDrainStart'];
    };
    answer: Schemas['NodeDrain'];
  };
  /** Cancel all builds of a team that wait or run */
  adminCancelTeamBuilds: {
    request: {
      teamID: string;
    };
    answer: {
      /** at least 0 */
      cancelledCount: number;
      /** at least 0 */
      failedCount: number;
    };
  };
  /** Create an access token for a user */
  adminCreateAccessToken: {
    request: {
      userID: string;
      body: Schemas['NewAccessToken'];
    };
    answer: Schemas['CreatedAccessToken'];
  };
  /** Create an API key for a team */
  adminCreateApiKey: {
    request: {
      teamID: string;
      body: Schemas['NewTeamAPIKey'];
    };
    answer: Schemas['CreatedTeamAPIKey'];
  };
  /** Create a link that signs in at the dashboard once, as the operator or a user */
  adminCreateSignInLink: {
    request: {
      body?: Schemas['NewSignInLink'] | undefined;
    };
    answer: Schemas['SignInLink'];
  };
  /** Create a team */
  adminCreateTeam: {
    request: {
      body: Schemas['NewTeam'];
    };
    answer: Schemas['AdminTeam'];
  };
  /** Create a user */
  adminCreateUser: {
    request: {
      body: Schemas['NewUser'];
    };
    answer: Schemas['AdminUser'];
  };
  /** Delete an API key of a team */
  adminDeleteApiKey: {
    request: {
      teamID: string;
      apiKeyID: string;
    };
    answer: void;
  };
  /** Delete an orphaned sandbox with all its data */
  adminDiscardSandbox: {
    request: {
      sandboxID: string;
    };
    answer: void;
  };
  /** Delete an orphaned volume with its content */
  adminDiscardVolume: {
    request: {
      volumeID: string;
    };
    answer: void;
  };
  /** Examine the machine that answers, as `atoll doctor` does; takes some seconds and changes nothing */
  adminExamine: {
    request: Record<never, never>;
    answer: Schemas['Examination'];
  };
  /** Forget a machine for good: what only it had is lost */
  adminForgetNode: {
    request: {
      nodeID: string;
    };
    answer: Schemas['NodeForgotten'];
  };
  /** Allow the deletion of layers and memory that the database does not know, after an older one was accepted */
  adminForgetUnknown: {
    request: Record<never, never>;
    answer: void;
  };
  /** List audit log entries, newest first, page by page */
  adminGetAudit: {
    request: {
      teamID?: string | undefined;
      operation?: string | undefined;
      target?: string | undefined;
      /** ID of who changed it: an API key or a user */
      actor?: string | undefined;
      /** at least 1, at most 100, default 100 */
      limit?: number | undefined;
      nextToken?: string | undefined;
    };
    answer: Array<Schemas['AuditEntry']>;
  };
  /** Count the running sandboxes of each team; teams without any are left out */
  adminGetRunningCounts: {
    request: Record<never, never>;
    answer: Record<string, number>;
  };
  /** Invite a machine to the cluster */
  adminInviteNode: {
    request: Record<never, never>;
    answer: Schemas['ClusterInvite'];
  };
  /** Kill all sandboxes of a team */
  adminKillTeamSandboxes: {
    request: {
      teamID: string;
    };
    answer: {
      /** at least 0 */
      killedCount: number;
      /** at least 0 */
      failedCount: number;
    };
  };
  /** List orphans: sandboxes and volumes that the database does not know */
  adminListOrphans: {
    request: Record<never, never>;
    answer: Schemas['Orphans'];
  };
  /** List the settings that the process which answers was started with, and where each comes from */
  adminListSettings: {
    request: Record<never, never>;
    answer: Schemas['ShownSettings'];
  };
  /** List sandboxes of all teams that have been between two states for over 60 seconds */
  adminListStuckSandboxes: {
    request: Record<never, never>;
    answer: Array<Schemas['StuckSandbox']>;
  };
  /** List all teams */
  adminListTeams: {
    request: Record<never, never>;
    answer: Array<Schemas['AdminTeam']>;
  };
  /** List all users */
  adminListUsers: {
    request: Record<never, never>;
    answer: Array<Schemas['AdminUser']>;
  };
  /** Read what keeps a machine from being empty, and what of it can not be paused or moved */
  adminReadDrain: {
    request: {
      nodeID: string;
      /** Asks what could not go in this way; by default as the machine is drained, or else by pauses */
      mode?: 'wait' | 'pause' | 'move' | undefined;
    };
    answer: Schemas['NodeDrain'];
  };
  /** Get how creates, reconcilers and disks do, as the process that answers has seen it since it started */
  adminReadOverview: {
    request: Record<never, never>;
    answer: Schemas['InstallationOverview'];
  };
  /** Remove a user from a team */
  adminRemoveMember: {
    request: {
      teamID: string;
      userID: string;
    };
    answer: void;
  };
  /** Update a team: its name, limits and what its pauses outlive; ban or block it */
  adminUpdateTeam: {
    request: {
      teamID: string;
      body: Schemas['TeamChange'];
    };
    answer: Schemas['AdminTeam'];
  };
  /** Make a user an operator, or none any more; it counts from the next request on */
  adminUpdateUser: {
    request: {
      userID: string;
      body: Schemas['UserChange'];
    };
    answer: void;
  };
  /** Assign tags to the build that a template reference selects */
  assignTemplateTags: {
    request: {
      body: Schemas['AssignTemplateTagsRequest'];
    };
    answer: Schemas['AssignedTemplateTags'];
  };
  /** Begin to sign in at the identity provider */
  beginSignInAtProvider: {
    request: {
      body: Schemas['ProviderSignIn'];
    };
    answer: Schemas['ProviderUrl'];
  };
  /** Cancel a build that waits or runs */
  cancelTemplateBuild: {
    request: {
      templateID: string;
      buildID: string;
    };
    answer: void;
  };
  /** Set the own password; every session of the account ends and a new one begins */
  changePassword: {
    request: {
      body: Schemas['NewPassword'];
    };
    answer: Schemas['Session'];
  };
  /** Connect to a sandbox; resume it if it is paused */
  connectSandbox: {
    request: {
      sandboxID: string;
      body: Schemas['ConnectSandbox'];
    };
    answer: Schemas['Sandbox'];
  };
  /** Connect to a sandbox; resume it if it is paused */
  connectSandboxV2: {
    request: {
      sandboxID: string;
      body?: Schemas['ConnectSandboxV2'] | undefined;
    };
    answer: Schemas['Sandbox'];
  };
  /** Count the tags of a template that select a ready build */
  countTemplateTags: {
    request: {
      templateID: string;
    };
    answer: Schemas['TemplateTagsCountResponse'];
  };
  /** Create an access token for the user */
  createAccessToken: {
    request: {
      body: Schemas['NewAccessToken'];
    };
    answer: Schemas['CreatedAccessToken'];
  };
  /** Create an API key for the team */
  createApiKey: {
    request: {
      body: Schemas['NewTeamAPIKey'];
    };
    answer: Schemas['CreatedTeamAPIKey'];
  };
  /** Create a link by which somebody joins the team, once and within 72 hours */
  createInvitation: {
    request: {
      body: Schemas['NewInvitation'];
    };
    answer: Schemas['CreatedInvitation'];
  };
  /** Create an account by an invitation, join its team and sign in */
  createInvitedAccount: {
    request: {
      body: Schemas['InvitedAccount'];
    };
    answer: Schemas['Session'];
  };
  /** Create an account with a password for the operator who signed in by a link; the session becomes one of it */
  createOperatorAccount: {
    request: {
      body: Schemas['NewAccount'];
    };
    answer: Schemas['Session'];
  };
  /** Create a sandbox, secured only when asked for */
  createSandbox: {
    request: {
      /** The same request with the same key makes one sandbox, and all are answered alike for 24 hours; at most 255 characters */
      idempotencyKey?: string | undefined;
      body: Schemas['NewSandbox'];
    };
    answer: Schemas['Sandbox'];
  };
  /** Create a sandbox, always secured */
  createSandboxV2: {
    request: {
      /** The same request with the same key makes one sandbox, and all are answered alike for 24 hours; at most 255 characters */
      idempotencyKey?: string | undefined;
      body: Schemas['NewSandboxV2'];
    };
    answer: Schemas['Sandbox'];
  };
  /** Create a secret */
  createSecret: {
    request: {
      body: Schemas['NewSecret'];
    };
    answer: Schemas['Secret'];
  };
  /** Create a snapshot of a running sandbox */
  createSnapshot: {
    request: {
      sandboxID: string;
      /** The same request with the same key is carried out once, and all are answered alike for 24 hours; at most 255 characters */
      idempotencyKey?: string | undefined;
      body?: Schemas['NewSnapshot'] | undefined;
    };
    answer: Schemas['SnapshotInfo'];
  };
  /** Register a build of a Dockerfile for a new template; @deprecated */
  createTemplate: {
    request: {
      body: Schemas['TemplateBuildRequest'];
    };
    answer: Schemas['Template'];
  };
  /** Register a build; @deprecated */
  createTemplateV2: {
    request: {
      body: Schemas['TemplateBuildRequestV2'];
    };
    answer: Schemas['Template'];
  };
  /** Register a build; it waits until it is started */
  createTemplateV3: {
    request: {
      /** The same request with the same key is carried out once, and all are answered alike for 24 hours; at most 255 characters */
      idempotencyKey?: string | undefined;
      body: Schemas['TemplateBuildRequestV3'];
    };
    answer: Schemas['TemplateRequestResponseV3'];
  };
  /** Create an empty volume */
  createVolume: {
    request: {
      /** The same request with the same key is carried out once, and all are answered alike for 24 hours; at most 255 characters */
      idempotencyKey?: string | undefined;
      body: Schemas['NewVolume'];
    };
    answer: Schemas['VolumeAndToken'];
  };
  /** Create a directory */
  createVolumeDirectory: {
    request: {
      volumeID: string;
      /** From the volume's root; at least 1 characters */
      path: string;
      /** at least 0, at most 65535 */
      uid?: number | undefined;
      /** at least 0, at most 65535 */
      gid?: number | undefined;
      /** Permission bits; at least 0, at most 4095 */
      mode?: number | undefined;
      /** Make missing parents, and take what is there */
      force?: boolean | undefined;
    };
    answer: Schemas['VolumeEntryStat'];
  };
  /** Create a webhook */
  createWebhook: {
    request: {
      body: Schemas['NewWebhook'];
    };
    answer: Schemas['CreatedWebhook'];
  };
  /** Delete an access token; it is refused from the next request on */
  deleteAccessToken: {
    request: {
      accessTokenID: string;
    };
    answer: void;
  };
  /** Delete an API key; it is refused from the next request on */
  deleteApiKey: {
    request: {
      apiKeyID: string;
    };
    answer: void;
  };
  /** Take an invitation back */
  deleteInvitation: {
    request: {
      invitationID: string;
    };
    answer: void;
  };
  /** Remove a member from the team, from the next request on */
  deleteMember: {
    request: {
      userID: string;
    };
    answer: void;
  };
  /** Kill a sandbox, running or paused */
  deleteSandbox: {
    request: {
      sandboxID: string;
    };
    answer: void;
  };
  /** Delete a secret */
  deleteSecret: {
    request: {
      /** ID or name */
      secretID: string;
    };
    answer: void;
  };
  /** Delete a template with its builds */
  deleteTemplate: {
    request: {
      templateID: string;
    };
    answer: void;
  };
  /** Delete tags of a template */
  deleteTemplateTags: {
    request: {
      body: Schemas['DeleteTemplateTagsRequest'];
    };
    answer: void;
  };
  /** Delete a volume that no sandbox has, with its content */
  deleteVolume: {
    request: {
      volumeID: string;
    };
    answer: void;
  };
  /** Delete a path with everything below it */
  deleteVolumePath: {
    request: {
      volumeID: string;
      /** From the volume's root; at least 1 characters */
      path: string;
    };
    answer: void;
  };
  /** Delete a webhook and its pending deliveries */
  deleteWebhook: {
    request: {
      webhookID: string;
    };
    answer: void;
  };
  /** Fork a running sandbox */
  forkSandbox: {
    request: {
      sandboxID: string;
      /** The same request with the same key is carried out once, and all are answered alike for 24 hours; at most 255 characters */
      idempotencyKey?: string | undefined;
      body?: Schemas['SandboxFork'] | undefined;
    };
    answer: Array<Schemas['SandboxForkResult']>;
  };
  /** List who changed what of the team, newest first, page by page */
  getAudit: {
    request: {
      operation?: string | undefined;
      target?: string | undefined;
      /** ID of who changed it: an API key or a user */
      actor?: string | undefined;
      /** at least 1, at most 100, default 100 */
      limit?: number | undefined;
      nextToken?: string | undefined;
    };
    answer: Array<Schemas['AuditEntry']>;
  };
  /** Check whether the platform takes requests; if not, the message names the part that does not answer */
  getHealth: {
    request: Record<never, never>;
    answer: {
      status: 'ok';
    };
  };
  /** Get what verifiers of identity tokens need to know (OpenID Connect Discovery 1.0) */
  getIdentityConfiguration: {
    request: Record<never, never>;
    answer: Record<string, unknown>;
  };
  /** Get the public keys that verify identity tokens (RFC 7517): of last month, this one and the next */
  getIdentityKeys: {
    request: Record<never, never>;
    answer: Record<string, unknown>;
  };
  /** Get the limits of the team and how much of them is taken now */
  getLimits: {
    request: Record<never, never>;
    answer: Schemas['TeamUse'];
  };
  /** Get the metrics of the platform, for Prometheus */
  getMetrics: {
    request: Record<never, never>;
    answer: string;
  };
  /** Say whether a destination would pass a network policy, and by which rule; nothing is changed */
  getNetworkVerdict: {
    request: {
      body: Schemas['NetworkQuestion'];
    };
    answer: Schemas['NetworkVerdict'];
  };
  /** Get a node */
  getNode: {
    request: {
      nodeID: string;
    };
    answer: Schemas['NodeDetail'];
  };
  /** Get what a node used in the last day, a sample a minute, as the process that answers has seen it */
  getNodeMetrics: {
    request: {
      nodeID: string;
      /** Seconds of Unix time, inclusive; at least 0 */
      start?: number | undefined;
      /** Seconds of Unix time, inclusive; at least 0 */
      end?: number | undefined;
    };
    answer: Array<Schemas['NodeMetric']>;
  };
  /** Get this document */
  getOpenApi: {
    request: Record<never, never>;
    answer: Record<string, unknown>;
  };
  /** Get a sandbox, running or paused */
  getSandbox: {
    request: {
      sandboxID: string;
    };
    answer: Schemas['SandboxDetail'];
  };
  /** Get the logs of a sandbox, oldest first; @deprecated */
  getSandboxLogs: {
    request: {
      sandboxID: string;
      /** Entries from this time on, milliseconds of Unix time; at least 0 */
      start?: number | undefined;
      /** How many entries; never more than 1000; at least 0, default 1000 */
      limit?: number | undefined;
    };
    answer: Schemas['SandboxLogs'];
  };
  /** Get a page of the logs of a sandbox, newest first by default */
  getSandboxLogsV2: {
    request: {
      sandboxID: string;
      /** Milliseconds of Unix time: forward, entries from then on; backward, entries before; at least 0 */
      cursor?: number | undefined;
      /** at least 0, at most 1000, default 1000 */
      limit?: number | undefined;
      direction?: 'forward' | 'backward' | undefined;
      level?: 'debug' | 'info' | 'warn' | 'error' | undefined;
      logger?: 'sandbox' | 'process' | 'filesystem' | 'network' | 'agent' | undefined;
      /** Text in the message, in whatever case; at most 256 characters */
      search?: string | undefined;
    };
    answer: Schemas['SandboxLogsV2Response'];
  };
  /** Get the metrics of a sandbox, oldest first; empty for an unknown one */
  getSandboxMetrics: {
    request: {
      sandboxID: string;
      /** Unix seconds, inclusive; at least 0 */
      start?: number | undefined;
      /** Unix seconds, inclusive; at least 0 */
      end?: number | undefined;
    };
    answer: Array<Schemas['SandboxMetric']>;
  };
  /** Get the network traffic of a running sandbox since it was created or resumed */
  getSandboxTraffic: {
    request: {
      sandboxID: string;
    };
    answer: Schemas['SandboxTraffic'];
  };
  /** Get the latest metrics of several sandboxes */
  getSandboxesMetrics: {
    request: {
      /** at most 100 of them */
      sandbox_ids: Array<string>;
    };
    answer: Schemas['SandboxesWithMetrics'];
  };
  /** Get a secret without its value */
  getSecret: {
    request: {
      /** ID or name */
      secretID: string;
    };
    answer: Schemas['Secret'];
  };
  /** Get the session: who is signed in */
  getSession: {
    request: Record<never, never>;
    answer: Schemas['Session'];
  };
  /** Get the identity provider at which people can sign in */
  getSignInProvider: {
    request: Record<never, never>;
    answer: Schemas['SignInProvider'];
  };
  /** Get the metrics of a team, of the last 7 days by default */
  getTeamMetrics: {
    request: {
      teamID: string;
      /** Unix seconds, inclusive; at least 0 */
      start?: number | undefined;
      /** Unix seconds, inclusive; at least 0 */
      end?: number | undefined;
    };
    answer: Array<Schemas['TeamMetric']>;
  };
  /** Get the maximum of a metric of a team */
  getTeamMetricsMax: {
    request: {
      teamID: string;
      metric: 'concurrent_sandboxes' | 'sandbox_start_rate';
      /** Unix seconds, inclusive; at least 0 */
      start?: number | undefined;
      /** Unix seconds, inclusive; at least 0 */
      end?: number | undefined;
    };
    answer: Schemas['MaxTeamMetric'];
  };
  /** Get for how long sandboxes of each template ran, in the last 7 days by default */
  getTeamTemplateUse: {
    request: {
      teamID: string;
      /** Unix seconds, inclusive; at least 0 */
      start?: number | undefined;
      /** Unix seconds, inclusive; at least 0 */
      end?: number | undefined;
    };
    answer: Array<Schemas['TemplateUse']>;
  };
  /** Get a template of the team with a page of its builds, newest first */
  getTemplate: {
    request: {
      templateID: string;
      /** at least 1, at most 100, default 100 */
      limit?: number | undefined;
      nextToken?: string | undefined;
    };
    answer: Schemas['TemplateWithBuilds'];
  };
  /** Check whether a template name is taken: 200 by this team, 403 by another, 404 not at all */
  getTemplateAlias: {
    request: {
      alias: string;
    };
    answer: Schemas['TemplateAlias'];
  };
  /** Get a page of the log of a build */
  getTemplateBuildLogs: {
    request: {
      templateID: string;
      buildID: string;
      /** Epoch milliseconds; at least 0 */
      cursor?: number | undefined;
      /** at least 0, at most 100, default 100 */
      limit?: number | undefined;
      direction?: 'forward' | 'backward' | undefined;
      level?: 'debug' | 'info' | 'warn' | 'error' | undefined;
      source?: 'temporary' | 'persistent' | undefined;
    };
    answer: Schemas['TemplateBuildLogsResponse'];
  };
  /** Get the status of a build and the next lines of its log */
  getTemplateBuildStatus: {
    request: {
      templateID: string;
      buildID: string;
      /** at least 0, default 0 */
      logsOffset?: number | undefined;
      /** at least 0, at most 100, default 100 */
      limit?: number | undefined;
      level?: 'debug' | 'info' | 'warn' | 'error' | undefined;
    };
    answer: Schemas['TemplateBuildInfo'];
  };
  /** Get how sandboxes of a template of the team begin, and its layers with who shares them */
  getTemplateContent: {
    request: {
      templateID: string;
    };
    answer: Schemas['TemplateContent'];
  };
  /** Get the upload URL for the files of a COPY, and whether they are there already */
  getTemplateFileUpload: {
    request: {
      templateID: string;
      hash: string;
    };
    answer: Schemas['TemplateBuildFileUpload'];
  };
  /** Get a volume, with a new token for its content */
  getVolume: {
    request: {
      volumeID: string;
    };
    answer: Schemas['VolumeAndToken'];
  };
  /** Read a file */
  getVolumeFile: {
    request: {
      volumeID: string;
      /** From the volume's root; at least 1 characters */
      path: string;
    };
    answer: ReadableStream<Uint8Array>;
  };
  /** Get the metadata of a path in a volume; a symlink is not followed */
  getVolumePath: {
    request: {
      volumeID: string;
      /** From the volume's root; at least 1 characters */
      path: string;
    };
    answer: Schemas['VolumeEntryStat'];
  };
  /** Get how much room each volume of the team takes */
  getVolumesUse: {
    request: Record<never, never>;
    answer: Schemas['VolumesUse'];
  };
  /** Get a webhook */
  getWebhook: {
    request: {
      webhookID: string;
    };
    answer: Schemas['Webhook'];
  };
  /** Join the cluster as a machine, by an invitation */
  joinCluster: {
    request: {
      body: Schemas['ClusterJoin'];
    };
    answer: Schemas['ClusterJoined'];
  };
  /** Join the cluster as the machine of a pod, by the service account of that pod */
  joinClusterAsPod: {
    request: {
      body: Schemas['ClusterJoinPod'];
    };
    answer: Schemas['ClusterPodJoined'];
  };
  /** Join a team by an invitation, as whoever is signed in */
  joinTeam: {
    request: {
      body: Schemas['JoinTeam'];
    };
    answer: Schemas['Session'];
  };
  /** List the API keys of the team, masked */
  listApiKeys: {
    request: Record<never, never>;
    answer: Array<Schemas['TeamAPIKey']>;
  };
  /** List the installation's own templates, which every team may use */
  listDefaultTemplates: {
    request: Record<never, never>;
    answer: Array<Schemas['Template']>;
  };
  /** List lifecycle events of the team, newest first */
  listEvents: {
    request: {
      /** Events to skip; at least 0, default 0 */
      offset?: number | undefined;
      /** at least 1, at most 100, default 10 */
      limit?: number | undefined;
      /** Oldest first; default false */
      orderAsc?: boolean | undefined;
      /** Only these */
      types?: Array<'sandbox.lifecycle.created' | 'sandbox.lifecycle.updated' | 'sandbox.lifecycle.paused' | 'sandbox.lifecycle.resumed' | 'sandbox.lifecycle.checkpointed' | 'sandbox.lifecycle.forked' | 'sandbox.lifecycle.disk_failed' | 'sandbox.lifecycle.killed' | 'build.lifecycle.created' | 'build.lifecycle.started' | 'build.lifecycle.ready' | 'build.lifecycle.failed' | 'volume.lifecycle.created' | 'volume.lifecycle.deleted'> | undefined;
      kind?: 'sandbox' | 'build' | 'volume' | undefined;
      /** Only of the one with this ID */
      subjectID?: string | undefined;
    };
    answer: Array<Schemas['LifecycleEvent']>;
  };
  /** List the invitations into the team that nobody has taken, newest first */
  listInvitations: {
    request: Record<never, never>;
    answer: Array<Schemas['Invitation']>;
  };
  /** List the members of the team, the oldest first */
  listMembers: {
    request: Record<never, never>;
    answer: Array<Schemas['Member']>;
  };
  /** List nodes */
  listNodes: {
    request: {
      clusterID?: string | undefined;
    };
    answer: Array<Schemas['Node']>;
  };
  /** List events of a sandbox, newest first; empty where the team has none with this ID */
  listSandboxEvents: {
    request: {
      sandboxID: string;
      /** Events to skip; at least 0, default 0 */
      offset?: number | undefined;
      /** at least 1, at most 100, default 10 */
      limit?: number | undefined;
      /** Oldest first; default false */
      orderAsc?: boolean | undefined;
      /** Only these */
      types?: Array<'sandbox.lifecycle.created' | 'sandbox.lifecycle.updated' | 'sandbox.lifecycle.paused' | 'sandbox.lifecycle.resumed' | 'sandbox.lifecycle.checkpointed' | 'sandbox.lifecycle.forked' | 'sandbox.lifecycle.disk_failed' | 'sandbox.lifecycle.killed' | 'build.lifecycle.created' | 'build.lifecycle.started' | 'build.lifecycle.ready' | 'build.lifecycle.failed' | 'volume.lifecycle.created' | 'volume.lifecycle.deleted'> | undefined;
    };
    answer: Array<Schemas['LifecycleEvent']>;
  };
  /** List running sandboxes, newest first; @deprecated */
  listSandboxes: {
    request: {
      /** key=value pairs joined by "&", each key and value URL-encoded; all must match */
      metadata?: string | undefined;
    };
    answer: Array<Schemas['ListedSandbox']>;
  };
  /** List sandboxes, page by page */
  listSandboxesV2: {
    request: {
      /** key=value pairs joined by "&", each key and value URL-encoded; all must match */
      metadata?: string | undefined;
      state?: Array<'running' | 'paused'> | undefined;
      order?: 'asc' | 'desc' | undefined;
      /** RFC 3339, inclusive */
      startedAfter?: string | undefined;
      /** Template ID or name, without tag */
      template?: string | undefined;
      /** The node that runs or keeps them */
      nodeID?: string | undefined;
      /** The beginning of the ID, or a part of a key or value of metadata of up to 4 KiB, in any case; at least 1 characters, at most 100 characters */
      text?: string | undefined;
      nextToken?: string | undefined;
      /** at least 1, at most 100, default 100 */
      limit?: number | undefined;
    };
    answer: Array<Schemas['ListedSandbox']>;
  };
  /** List secrets of the team without their values, newest first, page by page */
  listSecrets: {
    request: {
      /** at least 1, at most 100, default 100 */
      limit?: number | undefined;
      nextToken?: string | undefined;
    };
    answer: Array<Schemas['Secret']>;
  };
  /** List own sessions, newest first */
  listSessions: {
    request: Record<never, never>;
    answer: Array<Schemas['ListedSession']>;
  };
  /** List snapshots of the team, newest first, page by page */
  listSnapshots: {
    request: {
      /** Only those of this sandbox, which may be gone */
      sandboxID?: string | undefined;
      /** Name or ID, with or without tag */
      name?: string | undefined;
      /** at least 1, at most 100, default 100 */
      limit?: number | undefined;
      nextToken?: string | undefined;
    };
    answer: Array<Schemas['SnapshotInfo']>;
  };
  /** List sandbox events of the team, newest first */
  listTeamSandboxEvents: {
    request: {
      /** Events to skip; at least 0, default 0 */
      offset?: number | undefined;
      /** at least 1, at most 100, default 10 */
      limit?: number | undefined;
      /** Oldest first; default false */
      orderAsc?: boolean | undefined;
      /** Only these */
      types?: Array<'sandbox.lifecycle.created' | 'sandbox.lifecycle.updated' | 'sandbox.lifecycle.paused' | 'sandbox.lifecycle.resumed' | 'sandbox.lifecycle.checkpointed' | 'sandbox.lifecycle.forked' | 'sandbox.lifecycle.disk_failed' | 'sandbox.lifecycle.killed' | 'build.lifecycle.created' | 'build.lifecycle.started' | 'build.lifecycle.ready' | 'build.lifecycle.failed' | 'volume.lifecycle.created' | 'volume.lifecycle.deleted'> | undefined;
    };
    answer: Array<Schemas['LifecycleEvent']>;
  };
  /** List the teams of a user, each with a new API key */
  listTeams: {
    request: Record<never, never>;
    answer: Array<Schemas['Team']>;
  };
  /** List the ready builds that a tag was given to, newest first, page by page */
  listTemplateTagAssignments: {
    request: {
      templateID: string;
      tag: string;
      cursor?: string | undefined;
      /** at least 1, at most 100, default 50 */
      limit?: number | undefined;
    };
    answer: Schemas['TemplateTagAssignmentsResponse'];
  };
  /** List the tags of a template with the builds that they were given to, page by page */
  listTemplateTagGroups: {
    request: {
      templateID: string;
      /** at least 1, at most 100, default 6 */
      assignmentLimit?: number | undefined;
      /** at least 1, at most 100, default 25 */
      tagsLimit?: number | undefined;
      tagsCursor?: string | undefined;
      /** Part of a tag; at most 128 characters */
      search?: string | undefined;
      sort?: 'latest_asc' | 'latest_desc' | 'name_asc' | 'name_desc' | undefined;
    };
    answer: Schemas['TemplateTagGroupsResponse'];
  };
  /** List the tags of a template and their builds */
  listTemplateTags: {
    request: {
      templateID: string;
    };
    answer: Array<Schemas['TemplateTag']>;
  };
  /** List all templates of the team, newest first; @deprecated */
  listTemplates: {
    request: {
      /** Deprecated; must be the team of the credential */
      teamID?: string | undefined;
    };
    answer: Array<Schemas['Template']>;
  };
  /** List templates of the team, newest first, page by page */
  listTemplatesV2: {
    request: {
      /** Deprecated; must be the team of the credential */
      teamID?: string | undefined;
      /** at least 1, at most 100, default 100 */
      limit?: number | undefined;
      nextToken?: string | undefined;
    };
    answer: Array<Schemas['Template']>;
  };
  /** List a directory, each directory followed by its children, by name */
  listVolumeDirectory: {
    request: {
      volumeID: string;
      /** From the volume's root; at least 1 characters */
      path: string;
      /** at least 1, at most 10, default 1 */
      depth?: number | undefined;
    };
    answer: Array<Schemas['VolumeEntryStat']>;
  };
  /** List volumes of the team, oldest first */
  listVolumes: {
    request: Record<never, never>;
    answer: Array<Schemas['Volume']>;
  };
  /** List the deliveries of a webhook, newest first */
  listWebhookDeliveries: {
    request: {
      webhookID: string;
      state?: 'pending' | 'delivered' | 'dead' | undefined;
      /** at least 0, default 0 */
      offset?: number | undefined;
      /** at least 1, at most 100, default 100 */
      limit?: number | undefined;
    };
    answer: Array<Schemas['WebhookDelivery']>;
  };
  /** List the webhooks of the team */
  listWebhooks: {
    request: Record<never, never>;
    answer: Array<Schemas['Webhook']>;
  };
  /** Pause a sandbox */
  pauseSandbox: {
    request: {
      sandboxID: string;
      body?: Schemas['SandboxPause'] | undefined;
    };
    answer: void;
  };
  /** Prove again whose the session is, by password, access token or a new link: for ten minutes it may do everything */
  proveSession: {
    request: {
      body: Schemas['SessionProof'];
    };
    answer: void;
  };
  /** Upload an archive (tar, plain or gzip) to a URL that the platform gave */
  putTemplateFiles: {
    request: {
      teamID: string;
      hash: string;
      /** at least 0 */
      expires: number;
      signature: string;
      body: Bytes;
    };
    answer: void;
  };
  /** Write a file from the body; it appears whole or not at all */
  putVolumeFile: {
    request: {
      volumeID: string;
      /** From the volume's root; at least 1 characters */
      path: string;
      /** at least 0, at most 65535 */
      uid?: number | undefined;
      /** at least 0, at most 65535 */
      gid?: number | undefined;
      /** Permission bits; at least 0, at most 4095 */
      mode?: number | undefined;
      /** Make missing parents, and take what is there */
      force?: boolean | undefined;
      body: Bytes;
    };
    answer: Schemas['VolumeEntryStat'];
  };
  /** Rebuild a template from a Dockerfile */
  rebuildTemplate: {
    request: {
      templateID: string;
      body: Schemas['TemplateBuildRequest'];
    };
    answer: Schemas['Template'];
  };
  /** Redeliver an event */
  redeliverWebhookEvent: {
    request: {
      webhookID: string;
      eventID: string;
    };
    answer: void;
  };
  /** Extend the timeout of a sandbox */
  refreshSandbox: {
    request: {
      sandboxID: string;
      body?: Schemas['SandboxRefresh'] | undefined;
    };
    answer: void;
  };
  /** Rename an API key */
  renameApiKey: {
    request: {
      apiKeyID: string;
      body: Schemas['UpdateTeamAPIKey'];
    };
    answer: void;
  };
  /** Make a volume whose machine is lost of its newest copy again, on another machine */
  restoreVolume: {
    request: {
      volumeID: string;
    };
    answer: Schemas['RestoredVolume'];
  };
  /** Resume a paused sandbox; connect does this too; @deprecated */
  resumeSandbox: {
    request: {
      sandboxID: string;
      body?: Schemas['SandboxResume'] | undefined;
    };
    answer: Schemas['Sandbox'];
  };
  /** End an own session, or any as the operator; it is refused from the next request on */
  revokeSession: {
    request: {
      sessionID: string;
    };
    answer: void;
  };
  /** Set the timeout of a sandbox */
  setSandboxTimeout: {
    request: {
      sandboxID: string;
      body: Schemas['SandboxTimeout'];
    };
    answer: void;
  };
  /** Sign in: begin a session of a browser at the dashboard */
  signIn: {
    request: {
      body: Schemas['SignIn'];
    };
    answer: Schemas['Session'];
  };
  /** Sign out: end the session */
  signOut: {
    request: Record<never, never>;
    answer: void;
  };
  /** Start a build that was registered with a Dockerfile; @deprecated */
  startTemplateBuild: {
    request: {
      templateID: string;
      buildID: string;
    };
    answer: void;
  };
  /** Start a registered build with its steps */
  startTemplateBuildV2: {
    request: {
      templateID: string;
      buildID: string;
      body: Schemas['TemplateBuildStartV2'];
    };
    answer: void;
  };
  /** Stream lifecycle events of the team as they happen */
  streamEvents: {
    request: {
      /** The `id` of the last item that was seen; default: what happens from now on; at least 0 */
      after?: number | undefined;
      /** When it ends; at least 0, at most 60, default 60 */
      seconds?: number | undefined;
      /** Also tell which sandboxes are between two states: a message `transitions` with a list of `sandboxID` and `transition`, at the beginning and whenever it has changed; default false */
      transitions?: boolean | undefined;
      /** The same as `after`; the greater one counts */
      lastEventId?: string | undefined;
    };
    answer: Schemas['LifecycleEvent'];
  };
  /** Stream the log of a sandbox as it grows */
  streamSandboxLogs: {
    request: {
      sandboxID: string;
      /** The `id` of the last item that was seen; default: as `tail` says; at least 0 */
      after?: number | undefined;
      /** When it ends; at least 0, at most 60, default 60 */
      seconds?: number | undefined;
      /** Without `after`: so many entries that are there already come first; at least 0, at most 1000, default 0 */
      tail?: number | undefined;
      level?: 'debug' | 'info' | 'warn' | 'error' | undefined;
      logger?: 'sandbox' | 'process' | 'filesystem' | 'network' | 'agent' | undefined;
      /** Text in the message, in whatever case; at most 256 characters */
      search?: string | undefined;
      /** The same as `after`; the greater one counts */
      lastEventId?: string | undefined;
    };
    answer: Schemas['SandboxLogEntry'];
  };
  /** Stream the log of a build as it grows */
  streamTemplateBuildLogs: {
    request: {
      templateID: string;
      buildID: string;
      /** The `id` of the last item that was seen; default: from the first line on; at least 0 */
      after?: number | undefined;
      /** When it ends; at least 0, at most 60, default 60 */
      seconds?: number | undefined;
      level?: 'debug' | 'info' | 'warn' | 'error' | undefined;
      /** The same as `after`; the greater one counts */
      lastEventId?: string | undefined;
    };
    answer: Schemas['BuildLogEntry'];
  };
  /** Say whether a tag of a template selects a ready build */
  templateTagExists: {
    request: {
      templateID: string;
      tag: string;
    };
    answer: Schemas['TemplateTagExistsResponse'];
  };
  /** Give a member of the team a role; it counts from the next request on */
  updateMember: {
    request: {
      userID: string;
      body: Schemas['MemberChange'];
    };
    answer: void;
  };
  /** Set the status of a node: take it out of placement, or back in */
  updateNode: {
    request: {
      nodeID: string;
      body: Schemas['NodeStatusChange'];
    };
    answer: void;
  };
  /** Replace the outgoing network rules of a running sandbox; members that are left out are cleared */
  updateSandboxNetwork: {
    request: {
      sandboxID: string;
      body: Schemas['SandboxNetworkUpdate'];
    };
    answer: void;
  };
  /** Update a secret with a new version */
  updateSecret: {
    request: {
      /** ID or name */
      secretID: string;
      body: Schemas['NewSecretVersion'];
    };
    answer: Schemas['Secret'];
  };
  /** Update a template: publish it with its names without namespace, or make it private; @deprecated */
  updateTemplate: {
    request: {
      templateID: string;
      body?: Schemas['TemplateUpdateRequest'] | undefined;
    };
    answer: Schemas['TemplateUpdateResponse'];
  };
  /** Update a template: publish it, or make it private */
  updateTemplateV2: {
    request: {
      templateID: string;
      body?: Schemas['TemplateUpdateRequest'] | undefined;
    };
    answer: Schemas['TemplateUpdateResponse'];
  };
  /** Change owner and permissions of a path; a symlink is followed inside the volume */
  updateVolumePath: {
    request: {
      volumeID: string;
      /** From the volume's root; at least 1 characters */
      path: string;
      body: Schemas['VolumeEntryChange'];
    };
    answer: Schemas['VolumeEntryStat'];
  };
  /** Update a webhook */
  updateWebhook: {
    request: {
      webhookID: string;
      body: Schemas['WebhookUpdate'];
    };
    answer: Schemas['Webhook'];
  };
}

/** The operations that are followed: each gives what its answer is, again and again. */
export type Streams = 'streamEvents' | 'streamSandboxLogs' | 'streamTemplateBuildLogs';

/** How an operation is asked: by method, path, and where the members of its request go. */
export type Wire = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: readonly string[];
  /** Members of the request that are headers, with the headers' names. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: 'json' | 'bytes';
  readonly answer: Answer;
};

/** How a successful answer is read. */
export type Answer = 'nothing' | 'json' | 'text' | 'bytes' | 'events';

/** All operations, by name. */
export const wires: { readonly [Name in keyof Operations]: Wire } = {
  adminAddMember: { method: 'PUT', path: '/admin/teams/{teamID}/members/{userID}', answer: 'nothing' },
  adminAdoptSandbox: { method: 'POST', path: '/admin/orphans/sandboxes/{sandboxID}/adopt', body: 'json', answer: 'nothing' },
  adminAdoptVolume: { method: 'POST', path: '/admin/orphans/volumes/{volumeID}/adopt/{teamID}', body: 'json', answer: 'nothing' },
  adminBeginDrain: { method: 'POST', path: '/admin/nodes/{nodeID}/drain', body: 'json', answer: 'json' },
  adminCancelTeamBuilds: { method: 'POST', path: '/admin/teams/{teamID}/builds/cancel', answer: 'json' },
  adminCreateAccessToken: { method: 'POST', path: '/admin/users/{userID}/access-tokens', body: 'json', answer: 'json' },
  adminCreateApiKey: { method: 'POST', path: '/admin/teams/{teamID}/api-keys', body: 'json', answer: 'json' },
  adminCreateSignInLink: { method: 'POST', path: '/admin/sign-in-links', body: 'json', answer: 'json' },
  adminCreateTeam: { method: 'POST', path: '/admin/teams', body: 'json', answer: 'json' },
  adminCreateUser: { method: 'POST', path: '/admin/users', body: 'json', answer: 'json' },
  adminDeleteApiKey: { method: 'DELETE', path: '/admin/teams/{teamID}/api-keys/{apiKeyID}', answer: 'nothing' },
  adminDiscardSandbox: { method: 'DELETE', path: '/admin/orphans/sandboxes/{sandboxID}', answer: 'nothing' },
  adminDiscardVolume: { method: 'DELETE', path: '/admin/orphans/volumes/{volumeID}', answer: 'nothing' },
  adminExamine: { method: 'GET', path: '/admin/doctor', answer: 'json' },
  adminForgetNode: { method: 'DELETE', path: '/admin/nodes/{nodeID}', answer: 'json' },
  adminForgetUnknown: { method: 'POST', path: '/admin/orphans/forget-unknown', answer: 'nothing' },
  adminGetAudit: { method: 'GET', path: '/admin/audit', query: ['teamID', 'operation', 'target', 'actor', 'limit', 'nextToken'], answer: 'json' },
  adminGetRunningCounts: { method: 'GET', path: '/admin/sandboxes/running-counts', answer: 'json' },
  adminInviteNode: { method: 'POST', path: '/admin/cluster/invites', answer: 'json' },
  adminKillTeamSandboxes: { method: 'POST', path: '/admin/teams/{teamID}/sandboxes/kill', answer: 'json' },
  adminListOrphans: { method: 'GET', path: '/admin/orphans', answer: 'json' },
  adminListSettings: { method: 'GET', path: '/admin/settings', answer: 'json' },
  adminListStuckSandboxes: { method: 'GET', path: '/admin/sandboxes/stuck', answer: 'json' },
  adminListTeams: { method: 'GET', path: '/admin/teams', answer: 'json' },
  adminListUsers: { method: 'GET', path: '/admin/users', answer: 'json' },
  adminReadDrain: { method: 'GET', path: '/admin/nodes/{nodeID}/drain', query: ['mode'], answer: 'json' },
  adminReadOverview: { method: 'GET', path: '/admin/overview', answer: 'json' },
  adminRemoveMember: { method: 'DELETE', path: '/admin/teams/{teamID}/members/{userID}', answer: 'nothing' },
  adminUpdateTeam: { method: 'PATCH', path: '/admin/teams/{teamID}', body: 'json', answer: 'json' },
  adminUpdateUser: { method: 'PATCH', path: '/admin/users/{userID}', body: 'json', answer: 'nothing' },
  assignTemplateTags: { method: 'POST', path: '/templates/tags', body: 'json', answer: 'json' },
  beginSignInAtProvider: { method: 'POST', path: '/session/provider', body: 'json', answer: 'json' },
  cancelTemplateBuild: { method: 'POST', path: '/templates/{templateID}/builds/{buildID}/cancel', answer: 'nothing' },
  changePassword: { method: 'PUT', path: '/session/password', body: 'json', answer: 'json' },
  connectSandbox: { method: 'POST', path: '/sandboxes/{sandboxID}/connect', body: 'json', answer: 'json' },
  connectSandboxV2: { method: 'POST', path: '/v2/sandboxes/{sandboxID}/connect', body: 'json', answer: 'json' },
  countTemplateTags: { method: 'GET', path: '/templates/{templateID}/tags/count', answer: 'json' },
  createAccessToken: { method: 'POST', path: '/access-tokens', body: 'json', answer: 'json' },
  createApiKey: { method: 'POST', path: '/api-keys', body: 'json', answer: 'json' },
  createInvitation: { method: 'POST', path: '/invitations', body: 'json', answer: 'json' },
  createInvitedAccount: { method: 'POST', path: '/session/invited', body: 'json', answer: 'json' },
  createOperatorAccount: { method: 'POST', path: '/session/account', body: 'json', answer: 'json' },
  createSandbox: { method: 'POST', path: '/sandboxes', headers: { idempotencyKey: 'idempotency-key' }, body: 'json', answer: 'json' },
  createSandboxV2: { method: 'POST', path: '/v2/sandboxes', headers: { idempotencyKey: 'idempotency-key' }, body: 'json', answer: 'json' },
  createSecret: { method: 'POST', path: '/secrets', body: 'json', answer: 'json' },
  createSnapshot: { method: 'POST', path: '/sandboxes/{sandboxID}/snapshots', headers: { idempotencyKey: 'idempotency-key' }, body: 'json', answer: 'json' },
  createTemplate: { method: 'POST', path: '/templates', body: 'json', answer: 'json' },
  createTemplateV2: { method: 'POST', path: '/v2/templates', body: 'json', answer: 'json' },
  createTemplateV3: { method: 'POST', path: '/v3/templates', headers: { idempotencyKey: 'idempotency-key' }, body: 'json', answer: 'json' },
  createVolume: { method: 'POST', path: '/volumes', headers: { idempotencyKey: 'idempotency-key' }, body: 'json', answer: 'json' },
  createVolumeDirectory: { method: 'POST', path: '/volumecontent/{volumeID}/dir', query: ['path', 'uid', 'gid', 'mode', 'force'], answer: 'json' },
  createWebhook: { method: 'POST', path: '/events/webhooks', body: 'json', answer: 'json' },
  deleteAccessToken: { method: 'DELETE', path: '/access-tokens/{accessTokenID}', answer: 'nothing' },
  deleteApiKey: { method: 'DELETE', path: '/api-keys/{apiKeyID}', answer: 'nothing' },
  deleteInvitation: { method: 'DELETE', path: '/invitations/{invitationID}', answer: 'nothing' },
  deleteMember: { method: 'DELETE', path: '/members/{userID}', answer: 'nothing' },
  deleteSandbox: { method: 'DELETE', path: '/sandboxes/{sandboxID}', answer: 'nothing' },
  deleteSecret: { method: 'DELETE', path: '/secrets/{secretID}', answer: 'nothing' },
  deleteTemplate: { method: 'DELETE', path: '/templates/{templateID}', answer: 'nothing' },
  deleteTemplateTags: { method: 'DELETE', path: '/templates/tags', body: 'json', answer: 'nothing' },
  deleteVolume: { method: 'DELETE', path: '/volumes/{volumeID}', answer: 'nothing' },
  deleteVolumePath: { method: 'DELETE', path: '/volumecontent/{volumeID}/path', query: ['path'], answer: 'nothing' },
  deleteWebhook: { method: 'DELETE', path: '/events/webhooks/{webhookID}', answer: 'nothing' },
  forkSandbox: { method: 'POST', path: '/sandboxes/{sandboxID}/fork', headers: { idempotencyKey: 'idempotency-key' }, body: 'json', answer: 'json' },
  getAudit: { method: 'GET', path: '/audit', query: ['operation', 'target', 'actor', 'limit', 'nextToken'], answer: 'json' },
  getHealth: { method: 'GET', path: '/health', answer: 'json' },
  getIdentityConfiguration: { method: 'GET', path: '/.well-known/openid-configuration', answer: 'json' },
  getIdentityKeys: { method: 'GET', path: '/.well-known/jwks.json', answer: 'json' },
  getLimits: { method: 'GET', path: '/limits', answer: 'json' },
  getMetrics: { method: 'GET', path: '/metrics', answer: 'text' },
  getNetworkVerdict: { method: 'POST', path: '/network/verdict', body: 'json', answer: 'json' },
  getNode: { method: 'GET', path: '/nodes/{nodeID}', answer: 'json' },
  getNodeMetrics: { method: 'GET', path: '/nodes/{nodeID}/metrics', query: ['start', 'end'], answer: 'json' },
  getOpenApi: { method: 'GET', path: '/openapi.json', answer: 'json' },
  getSandbox: { method: 'GET', path: '/sandboxes/{sandboxID}', answer: 'json' },
  getSandboxLogs: { method: 'GET', path: '/sandboxes/{sandboxID}/logs', query: ['start', 'limit'], answer: 'json' },
  getSandboxLogsV2: { method: 'GET', path: '/v2/sandboxes/{sandboxID}/logs', query: ['cursor', 'limit', 'direction', 'level', 'logger', 'search'], answer: 'json' },
  getSandboxMetrics: { method: 'GET', path: '/sandboxes/{sandboxID}/metrics', query: ['start', 'end'], answer: 'json' },
  getSandboxTraffic: { method: 'GET', path: '/sandboxes/{sandboxID}/traffic', answer: 'json' },
  getSandboxesMetrics: { method: 'GET', path: '/sandboxes/metrics', query: ['sandbox_ids'], answer: 'json' },
  getSecret: { method: 'GET', path: '/secrets/{secretID}', answer: 'json' },
  getSession: { method: 'GET', path: '/session', answer: 'json' },
  getSignInProvider: { method: 'GET', path: '/session/provider', answer: 'json' },
  getTeamMetrics: { method: 'GET', path: '/teams/{teamID}/metrics', query: ['start', 'end'], answer: 'json' },
  getTeamMetricsMax: { method: 'GET', path: '/teams/{teamID}/metrics/max', query: ['metric', 'start', 'end'], answer: 'json' },
  getTeamTemplateUse: { method: 'GET', path: '/teams/{teamID}/metrics/templates', query: ['start', 'end'], answer: 'json' },
  getTemplate: { method: 'GET', path: '/templates/{templateID}', query: ['limit', 'nextToken'], answer: 'json' },
  getTemplateAlias: { method: 'GET', path: '/templates/aliases/{alias}', answer: 'json' },
  getTemplateBuildLogs: { method: 'GET', path: '/templates/{templateID}/builds/{buildID}/logs', query: ['cursor', 'limit', 'direction', 'level', 'source'], answer: 'json' },
  getTemplateBuildStatus: { method: 'GET', path: '/templates/{templateID}/builds/{buildID}/status', query: ['logsOffset', 'limit', 'level'], answer: 'json' },
  getTemplateContent: { method: 'GET', path: '/templates/{templateID}/content', answer: 'json' },
  getTemplateFileUpload: { method: 'GET', path: '/templates/{templateID}/files/{hash}', answer: 'json' },
  getVolume: { method: 'GET', path: '/volumes/{volumeID}', answer: 'json' },
  getVolumeFile: { method: 'GET', path: '/volumecontent/{volumeID}/file', query: ['path'], answer: 'bytes' },
  getVolumePath: { method: 'GET', path: '/volumecontent/{volumeID}/path', query: ['path'], answer: 'json' },
  getVolumesUse: { method: 'GET', path: '/volumes/use', answer: 'json' },
  getWebhook: { method: 'GET', path: '/events/webhooks/{webhookID}', answer: 'json' },
  joinCluster: { method: 'POST', path: '/cluster/join', body: 'json', answer: 'json' },
  joinClusterAsPod: { method: 'POST', path: '/cluster/join-pod', body: 'json', answer: 'json' },
  joinTeam: { method: 'POST', path: '/session/teams', body: 'json', answer: 'json' },
  listApiKeys: { method: 'GET', path: '/api-keys', answer: 'json' },
  listDefaultTemplates: { method: 'GET', path: '/default-templates', answer: 'json' },
  listEvents: { method: 'GET', path: '/events', query: ['offset', 'limit', 'orderAsc', 'types', 'kind', 'subjectID'], answer: 'json' },
  listInvitations: { method: 'GET', path: '/invitations', answer: 'json' },
  listMembers: { method: 'GET', path: '/members', answer: 'json' },
  listNodes: { method: 'GET', path: '/nodes', query: ['clusterID'], answer: 'json' },
  listSandboxEvents: { method: 'GET', path: '/events/sandboxes/{sandboxID}', query: ['offset', 'limit', 'orderAsc', 'types'], answer: 'json' },
  listSandboxes: { method: 'GET', path: '/sandboxes', query: ['metadata'], answer: 'json' },
  listSandboxesV2: { method: 'GET', path: '/v2/sandboxes', query: ['metadata', 'state', 'order', 'startedAfter', 'template', 'nodeID', 'text', 'nextToken', 'limit'], answer: 'json' },
  listSecrets: { method: 'GET', path: '/secrets', query: ['limit', 'nextToken'], answer: 'json' },
  listSessions: { method: 'GET', path: '/sessions', answer: 'json' },
  listSnapshots: { method: 'GET', path: '/snapshots', query: ['sandboxID', 'name', 'limit', 'nextToken'], answer: 'json' },
  listTeamSandboxEvents: { method: 'GET', path: '/events/sandboxes', query: ['offset', 'limit', 'orderAsc', 'types'], answer: 'json' },
  listTeams: { method: 'GET', path: '/teams', answer: 'json' },
  listTemplateTagAssignments: { method: 'GET', path: '/templates/{templateID}/tags/{tag}/assignments', query: ['cursor', 'limit'], answer: 'json' },
  listTemplateTagGroups: { method: 'GET', path: '/templates/{templateID}/tags/groups', query: ['assignmentLimit', 'tagsLimit', 'tagsCursor', 'search', 'sort'], answer: 'json' },
  listTemplateTags: { method: 'GET', path: '/templates/{templateID}/tags', answer: 'json' },
  listTemplates: { method: 'GET', path: '/templates', query: ['teamID'], answer: 'json' },
  listTemplatesV2: { method: 'GET', path: '/v2/templates', query: ['teamID', 'limit', 'nextToken'], answer: 'json' },
  listVolumeDirectory: { method: 'GET', path: '/volumecontent/{volumeID}/dir', query: ['path', 'depth'], answer: 'json' },
  listVolumes: { method: 'GET', path: '/volumes', answer: 'json' },
  listWebhookDeliveries: { method: 'GET', path: '/events/webhooks/{webhookID}/deliveries', query: ['state', 'offset', 'limit'], answer: 'json' },
  listWebhooks: { method: 'GET', path: '/events/webhooks', answer: 'json' },
  pauseSandbox: { method: 'POST', path: '/sandboxes/{sandboxID}/pause', body: 'json', answer: 'nothing' },
  proveSession: { method: 'PUT', path: '/session/proof', body: 'json', answer: 'nothing' },
  putTemplateFiles: { method: 'PUT', path: '/template-files/{teamID}/{hash}', query: ['expires', 'signature'], body: 'bytes', answer: 'nothing' },
  putVolumeFile: { method: 'PUT', path: '/volumecontent/{volumeID}/file', query: ['path', 'uid', 'gid', 'mode', 'force'], body: 'bytes', answer: 'json' },
  rebuildTemplate: { method: 'POST', path: '/templates/{templateID}', body: 'json', answer: 'json' },
  redeliverWebhookEvent: { method: 'POST', path: '/events/webhooks/{webhookID}/deliveries/{eventID}/redeliver', answer: 'nothing' },
  refreshSandbox: { method: 'POST', path: '/sandboxes/{sandboxID}/refreshes', body: 'json', answer: 'nothing' },
  renameApiKey: { method: 'PATCH', path: '/api-keys/{apiKeyID}', body: 'json', answer: 'nothing' },
  restoreVolume: { method: 'POST', path: '/volumes/{volumeID}/restore', answer: 'json' },
  resumeSandbox: { method: 'POST', path: '/sandboxes/{sandboxID}/resume', body: 'json', answer: 'json' },
  revokeSession: { method: 'DELETE', path: '/sessions/{sessionID}', answer: 'nothing' },
  setSandboxTimeout: { method: 'POST', path: '/sandboxes/{sandboxID}/timeout', body: 'json', answer: 'nothing' },
  signIn: { method: 'POST', path: '/session', body: 'json', answer: 'json' },
  signOut: { method: 'DELETE', path: '/session', answer: 'nothing' },
  startTemplateBuild: { method: 'POST', path: '/templates/{templateID}/builds/{buildID}', answer: 'nothing' },
  startTemplateBuildV2: { method: 'POST', path: '/v2/templates/{templateID}/builds/{buildID}', body: 'json', answer: 'nothing' },
  streamEvents: { method: 'GET', path: '/events/stream', query: ['after', 'seconds', 'transitions'], headers: { lastEventId: 'last-event-id' }, answer: 'events' },
  streamSandboxLogs: { method: 'GET', path: '/sandboxes/{sandboxID}/logs/stream', query: ['after', 'seconds', 'tail', 'level', 'logger', 'search'], headers: { lastEventId: 'last-event-id' }, answer: 'events' },
  streamTemplateBuildLogs: { method: 'GET', path: '/templates/{templateID}/builds/{buildID}/logs/stream', query: ['after', 'seconds', 'level'], headers: { lastEventId: 'last-event-id' }, answer: 'events' },
  templateTagExists: { method: 'GET', path: '/templates/{templateID}/tags/exists', query: ['tag'], answer: 'json' },
  updateMember: { method: 'PATCH', path: '/members/{userID}', body: 'json', answer: 'nothing' },
  updateNode: { method: 'POST', path: '/nodes/{nodeID}', body: 'json', answer: 'nothing' },
  updateSandboxNetwork: { method: 'PUT', path: '/sandboxes/{sandboxID}/network', body: 'json', answer: 'nothing' },
  updateSecret: { method: 'POST', path: '/secrets/{secretID}', body: 'json', answer: 'json' },
  updateTemplate: { method: 'PATCH', path: '/templates/{templateID}', body: 'json', answer: 'json' },
  updateTemplateV2: { method: 'PATCH', path: '/v2/templates/{templateID}', body: 'json', answer: 'json' },
  updateVolumePath: { method: 'PATCH', path: '/volumecontent/{volumeID}/path', query: ['path'], body: 'json', answer: 'json' },
  updateWebhook: { method: 'PATCH', path: '/events/webhooks/{webhookID}', body: 'json', answer: 'json' },
};
