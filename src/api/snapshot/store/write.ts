import type { Db } from '../../database/db.ts';
import type { BuildRecord } from '../../build/record.ts';
import { putTags } from '../../template/store/put-tags.ts';

/** Adds a build that is a snapshot of a sandbox to a snapshot template, and points `tag` at it. */
export async function insertSnapshotBuild(
  db: Db,
  build: Omit<BuildRecord, 'status' | 'createdAtUs' | 'updatedAtUs' | 'finishedAtUs'>,
  source: { sandboxId: string; tag: string; nowUs: number },
): Promise<void> {
  const { nowUs } = source;
  await db
    .insertInto('builds')
    .values({
      build_id: build.buildId,
      template_id: build.templateId,
      status: 'ready',
      cpu_count: build.cpuCount,
      memory_mib: build.memoryMiB,
      disk_mib: build.diskMiB,
      agent_version: build.agentVersion,
      layers_json: JSON.stringify(build.layers),
      config_json: JSON.stringify(build.config),
      reason_json: null,
      source_sandbox_id: source.sandboxId,
      request_json: null,
      created_at_us: nowUs,
      updated_at_us: nowUs,
      finished_at_us: nowUs,
    })
    .execute();
  await putTags(db, { ...build, tags: [source.tag], nowUs });
  await db
    .updateTable('templates')
    .set(update => ({ build_count: update('build_count', '+', 1), updated_at_us: nowUs }))
    .where('template_id', '=', build.templateId)
    .execute();
}
