import type { Selectable } from 'kysely';
import type { BuildStatus } from '../../protocol/api/template.ts';
import type { DriverName, StartedImage } from '../../protocol/node.ts';
import type { MountedVolume } from './sandbox-row.ts';
import type { BuildTable, TemplateTable } from './schema.ts';

/** How sandboxes made from a build start. */
export type BuildConfig = {
  defaultUser: string;
  /** Empty: the user's home directory. */
  defaultWorkdir: string;
  startCommand?: string;
  readyCommand?: string;
  /** Environment of the start and ready commands only. */
  buildEnv: Record<string, string>;
  /** Of a snapshot that has kept memory: the ID by which nodes know it. */
  memorySnapshotId?: string;
  /** Of a template with a start command whose memory was kept when it was ready. */
  started?: StartedImage;
  /** Of a snapshot: the volumes that its sandbox had. */
  volumeMounts?: MountedVolume[];
  /** Of a snapshot whose source had to be isolated so. */
  driver?: DriverName;
};

export type BuildRecord = {
  buildId: string;
  templateId: string;
  status: BuildStatus;
  cpuCount: number;
  memoryMiB: number;
  diskMiB: number;
  agentVersion: string | null;
  layers: string[];
  config: BuildConfig;
  createdAtUs: number;
  updatedAtUs: number;
  finishedAtUs: number | null;
};

export type TemplateRecord = {
  templateId: string;
  teamId: string;
  kind: 'template' | 'snapshot';
  public: boolean;
  createdBy: string | null;
  createdAtUs: number;
  updatedAtUs: number;
  lastSpawnedAtUs: number | null;
  spawnCount: number;
  buildCount: number;
};

export function templateOfRow(row: Selectable<TemplateTable>): TemplateRecord {
  return {
    templateId: row.template_id,
    teamId: row.team_id,
    kind: row.kind,
    public: row.public === 1,
    createdBy: row.created_by,
    createdAtUs: row.created_at_us,
    updatedAtUs: row.updated_at_us,
    lastSpawnedAtUs: row.last_spawned_at_us,
    spawnCount: row.spawn_count,
    buildCount: row.build_count,
  };
}

export function buildOfRow(row: Selectable<BuildTable>): BuildRecord {
  return {
    buildId: row.build_id,
    templateId: row.template_id,
    status: row.status,
    cpuCount: row.cpu_count,
    memoryMiB: row.memory_mib,
    diskMiB: row.disk_mib,
    agentVersion: row.agent_version,
    layers: JSON.parse(row.layers_json) as string[],
    config: JSON.parse(row.config_json) as BuildConfig,
    createdAtUs: row.created_at_us,
    updatedAtUs: row.updated_at_us,
    finishedAtUs: row.finished_at_us,
  };
}
