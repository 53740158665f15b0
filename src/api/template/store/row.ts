import type { Selectable } from 'kysely';
import type { BuildTable, TemplateTable } from '../../database/schema.ts';
import type { TemplateRecord } from '../record.ts';
import type { BuildConfig, BuildRecord } from '../../build/record.ts';

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
