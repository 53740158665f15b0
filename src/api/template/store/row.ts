import type { Selectable } from 'kysely';
import type { BuildTable, TemplateTable } from '../../database/schema.ts';
import type { TemplateRecord } from '../record.ts';
import type { BuildConfig, BuildRecord } from '../../build/record.ts';

/** The columns of a template's record, for kept queries. */
export const templateColumnNames = [
  ...(['templates.template_id', 'templates.team_id', 'templates.kind', 'templates.public'] as const),
  ...(['templates.created_by', 'templates.created_at_us', 'templates.updated_at_us'] as const),
  ...(['templates.last_spawned_at_us', 'templates.spawn_count', 'templates.build_count'] as const),
] as const;

/** The columns of a build's record, for kept queries. */
export const buildColumnNames = [
  ...(['builds.build_id', 'builds.template_id', 'builds.status', 'builds.cpu_count'] as const),
  ...(['builds.memory_mib', 'builds.disk_mib', 'builds.agent_version', 'builds.layers_json'] as const),
  ...(['builds.config_json', 'builds.created_at_us', 'builds.updated_at_us', 'builds.finished_at_us'] as const),
] as const;

type BuildColumn = (typeof buildColumnNames)[number] extends `builds.${infer Name}` ? Name : never;

/** The columns from which the record of a build is read. */
export type StoredBuild = Pick<Selectable<BuildTable>, BuildColumn & keyof BuildTable>;

/** The record of a row. */
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

/** The record of a row. */
export function buildOfRow(row: StoredBuild): BuildRecord {
  return {
    buildId: row.build_id,
    templateId: row.template_id,
    status: row.status,
    cpuCount: row.cpu_count,
    memoryMiB: row.memory_mib,
    diskMiB: row.disk_mib,
    agentVersion: row.agent_version,
    layers: layersIn(row),
    config: configIn(row),
    createdAtUs: row.created_at_us,
    updatedAtUs: row.updated_at_us,
    finishedAtUs: row.finished_at_us,
  };
}

/** The layers of a build, lowest first. */
export const layersIn = (row: Pick<StoredBuild, 'layers_json'>): string[] => JSON.parse(row.layers_json) as string[];

/** How sandboxes of a build start. */
export const configIn = (row: Pick<StoredBuild, 'config_json'>): BuildConfig =>
  JSON.parse(row.config_json) as BuildConfig;
