import type { Selectable } from 'kysely';
import type { SandboxNetworkConfig } from '../../protocol/api/network.ts';
import type { VolumeMount } from '../../protocol/api/sandbox.ts';
import type { Kept } from '../../protocol/node.ts';
import type { SandboxState } from '../../protocol/state.ts';
import type { Flag, SandboxTable } from './schema.ts';

/** A volume that a sandbox has, by the name that it had when it was mounted. */
export type MountedVolume = VolumeMount & { volumeId: string };

/** A sandbox as the platform knows it. Times are microseconds since the epoch. */
export type SandboxRecord = {
  sandboxId: string;
  /** One incarnation (UUID): a resume gives a new one. */
  executionId: string;
  teamId: string;
  nodeId: string;
  state: SandboxState;
  templateId: string;
  buildId: string;
  alias: string | null;
  agentVersion: string;
  cpuCount: number;
  memoryMiB: number;
  diskMiB: number;
  createdAtUs: number;
  startedAtUs: number;
  endAtUs: number;
  timeoutSeconds: number;
  secure: boolean;
  autoPause: boolean;
  autoPauseMemory: boolean;
  autoResume: boolean;
  allowInternetAccess: boolean | null;
  network: SandboxNetworkConfig | null;
  metadata: Record<string, string> | null;
  envVars: Record<string, string>;
  mcp: Record<string, unknown> | null;
  iam: Record<string, unknown> | null;
  volumeMounts: MountedVolume[];
  /** Of a paused sandbox: what was kept. Of one being paused: what is to be kept. Else null. */
  kept: Kept | null;
  /** While it is resumed: the incarnation that begins. Else null. */
  nextExecutionId: string | null;
};

export function sandboxOfRow(row: Selectable<SandboxTable>): SandboxRecord {
  return {
    sandboxId: row.sandbox_id,
    executionId: row.execution_id,
    teamId: row.team_id,
    nodeId: row.node_id,
    state: row.state,
    templateId: row.template_id,
    buildId: row.build_id,
    alias: row.alias,
    agentVersion: row.agent_version,
    cpuCount: row.cpu_count,
    memoryMiB: row.memory_mib,
    diskMiB: row.disk_mib,
    createdAtUs: row.created_at_us,
    startedAtUs: row.started_at_us,
    endAtUs: row.end_at_us,
    timeoutSeconds: row.timeout_seconds,
    secure: row.secure === 1,
    autoPause: row.auto_pause === 1,
    autoPauseMemory: row.auto_pause_memory === 1,
    autoResume: row.auto_resume === 1,
    allowInternetAccess: row.allow_internet_access === null ? null : row.allow_internet_access === 1,
    network: parseOrNull(row.network_json),
    metadata: parseOrNull(row.metadata_json),
    envVars: parse(row.env_vars_json),
    mcp: parseOrNull(row.mcp_json),
    iam: parseOrNull(row.iam_json),
    volumeMounts: parse(row.volume_mounts_json),
    kept: row.kept,
    nextExecutionId: row.next_execution_id,
  };
}

export function rowOfSandbox(sandbox: SandboxRecord): Selectable<SandboxTable> {
  return {
    sandbox_id: sandbox.sandboxId,
    execution_id: sandbox.executionId,
    team_id: sandbox.teamId,
    node_id: sandbox.nodeId,
    state: sandbox.state,
    template_id: sandbox.templateId,
    build_id: sandbox.buildId,
    alias: sandbox.alias,
    agent_version: sandbox.agentVersion,
    cpu_count: sandbox.cpuCount,
    memory_mib: sandbox.memoryMiB,
    disk_mib: sandbox.diskMiB,
    created_at_us: sandbox.createdAtUs,
    started_at_us: sandbox.startedAtUs,
    end_at_us: sandbox.endAtUs,
    timeout_seconds: sandbox.timeoutSeconds,
    secure: flag(sandbox.secure),
    auto_pause: flag(sandbox.autoPause),
    auto_pause_memory: flag(sandbox.autoPauseMemory),
    auto_resume: flag(sandbox.autoResume),
    ...networkColumns(sandbox),
    metadata_json: jsonOrNull(sandbox.metadata),
    env_vars_json: JSON.stringify(sandbox.envVars),
    mcp_json: jsonOrNull(sandbox.mcp),
    iam_json: jsonOrNull(sandbox.iam),
    volume_mounts_json: JSON.stringify(sandbox.volumeMounts),
    kept: sandbox.kept,
    next_execution_id: sandbox.nextExecutionId,
  };
}

/** The columns of what may change of a sandbox's network. */
export function networkColumns(
  settings: Pick<SandboxRecord, 'allowInternetAccess' | 'network'>,
): Pick<Selectable<SandboxTable>, 'allow_internet_access' | 'network_json'> {
  return {
    allow_internet_access: settings.allowInternetAccess === null ? null : flag(settings.allowInternetAccess),
    network_json: jsonOrNull(settings.network),
  };
}

const flag = (truth: boolean): Flag => (truth ? 1 : 0);
const jsonOrNull = (value: unknown): string | null => (value === null ? null : JSON.stringify(value));
/** The column's writer above is the only one, so its type is what comes back. */
const parse = <T>(json: string): T => JSON.parse(json) as T;
const parseOrNull = <T>(json: string | null): T | null => (json === null ? null : parse<T>(json));
