import type { SandboxNetworkConfig } from '../../protocol/api/network.ts';
import type { NewSandbox, VolumeMount } from '../../protocol/api/sandbox.ts';
import type { Durability } from '../../protocol/durability.ts';
import type { Kept } from '../../protocol/node.ts';
import type { SandboxState, Transition } from '../../protocol/state.ts';
import { type RecordOf, changing, column } from '../record/column.ts';

/** A sandbox's volume, with the name that it had when it was mounted. */
export type MountedVolume = VolumeMount & { volumeId: string };

/** The members of a sandbox and how each is stored: the only list of them. Times are microseconds since the epoch. */
export const sandboxColumns = {
  sandboxId: column('sandbox_id').plain<string>(),
  /** One incarnation (UUID): a resume sets a new one. */
  executionId: changing(column('execution_id').plain<string>()),
  teamId: column('team_id').plain<string>(),
  nodeId: changing(column('node_id').plain<string>()),
  state: changing(column('state').plain<SandboxState>()),
  templateId: column('template_id').plain<string>(),
  buildId: column('build_id').plain<string>(),
  /** The first name of its template when it was created. */
  alias: column('alias').plain<string | null>(),
  agentVersion: column('agent_version').plain<string>(),
  cpuCount: column('cpu_count').plain<number>(),
  memoryMiB: column('memory_mib').plain<number>(),
  diskMiB: column('disk_mib').plain<number>(),
  createdAtUs: column('created_at_us').plain<number>(),
  /** Start of the present run. */
  startedAtUs: changing(column('started_at_us').plain<number>()),
  /** When it expires; for a paused sandbox, when it was paused. */
  endAtUs: changing(column('end_at_us').plain<number>()),
  /** As requested at create; a wake-up by traffic uses it again. */
  timeoutSeconds: column('timeout_seconds').plain<number>(),
  secure: column('secure').flag(),
  autoPause: changing(column('auto_pause').flag()),
  autoPauseMemory: column('auto_pause_memory').flag(),
  autoPauseDurability: column('auto_pause_durability').plain<Durability>(),
  autoResume: column('auto_resume').flag(),
  /** As set at create or by the last network update; null when not set. */
  allowInternetAccess: changing(column('allow_internet_access').flag<boolean | null>()),
  /** Its header values and its proxy's password are sealed. */
  network: changing(column('network_json').json<SandboxNetworkConfig | null>()),
  metadata: column('metadata_json').json<Record<string, string> | null>(),
  envVars: column('env_vars_json').json<Record<string, string>>(),
  mcp: column('mcp_json').json<Record<string, unknown> | null>(),
  iam: column('iam_json').json<NonNullable<NewSandbox['iam']> | null>(),
  volumeMounts: column('volume_mounts_json').json<MountedVolume[]>(),
  /** What a paused sandbox has kept, and what one being paused will keep. Else null. */
  kept: changing(column('kept').plain<Kept | null>()),
  /** What a sandbox's pause survives, while it is paused, resumed or moved. Else null. */
  durability: changing(column('durability').plain<Durability | null>()),
  /** The memory that a paused sandbox has kept contains an agent that did not answer. */
  agentUnresponsive: changing(
    column('agent_unresponsive', { migration: '0014-agent-unresponsive', type: 'integer', initial: 0 }).flag(),
  ),
  /** During a resume: the incarnation that begins. During a move: the one that a machine was asked to begin. */
  nextExecutionId: changing(column('next_execution_id').plain<string | null>()),
  /** During a move: the machine that is to get it; its own one again, if it goes back. Else null. */
  nextNodeId: changing(column('next_node_id', { migration: '0009-moves', type: 'text' }).plain<string | null>()),
  /** During a transition: the process that works on it. Else null. */
  replicaId: changing(column('replica_id').plain<string | null>()),
} as const;

/** A sandbox as the platform knows it. */
export type SandboxRecord = RecordOf<typeof sandboxColumns>;

const { metadata, network: _network, envVars: _envVars, mcp: _mcp, iam: _iam, ...small } = sandboxColumns;

/**
 * The members read when many sandboxes are read at a time: all except those that their creator may make long. A team
 * has thousands of sandboxes, and hundreds of kilobytes of text from each would not fit into memory.
 */
export const sandboxFactColumns = small;

/** The same with what lists show. */
export const listedSandboxColumns = { ...small, metadata } as const;

/** A sandbox as it is read together with many others. */
export type SandboxFacts = RecordOf<typeof sandboxFactColumns>;

/** A sandbox of a list. */
export type ListedSandbox = RecordOf<typeof listedSandboxColumns>;

/** An execution that exists, or did. */
export type SandboxExecution = Pick<SandboxRecord, 'sandboxId' | 'executionId'>;

/** A sandbox in transition. */
export type SandboxInTransition = { sandboxId: string; transition: Transition };

/** What the answer to a create contains, and what making it needs. */
export type CreatedSandbox = Pick<SandboxRecord, 'sandboxId' | 'templateId' | 'agentVersion' | 'alias' | 'secure'> & {
  network: Pick<SandboxNetworkConfig, 'allowPublicTraffic'> | null;
};

/** The members that the platform itself sets. Its creator asks for all others. */
type Assigned =
  | ('sandboxId' | 'executionId' | 'teamId' | 'nodeId' | 'state' | 'templateId' | 'buildId' | 'alias' | 'agentVersion')
  | ('cpuCount' | 'memoryMiB' | 'diskMiB' | 'createdAtUs' | 'startedAtUs' | 'endAtUs' | 'kept' | 'nextExecutionId')
  | ('replicaId' | 'volumeMounts' | 'durability' | 'nextNodeId' | 'agentUnresponsive');

/** What a create may ask for, and so determine about the sandbox. */
export type SandboxOptions = Omit<SandboxRecord, Assigned>;

/** The options of a sandbox whose create asks for nothing. */
export const defaultOptions: Omit<SandboxOptions, 'timeoutSeconds' | 'secure'> = {
  autoPause: false,
  autoPauseMemory: true,
  autoPauseDurability: 'node',
  autoResume: false,
  allowInternetAccess: null,
  network: null,
  metadata: null,
  envVars: {},
  mcp: null,
  iam: null,
};
