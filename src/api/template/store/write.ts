import type { Db } from '../../database/db.ts';
import { putTags } from './put-tags.ts';
import type { BuildRecord } from '../../build/record.ts';

/** Writes a new template, without a build. */
export async function insertTemplate(
  db: Db,
  template: { templateId: string; teamId: string; kind: 'template' | 'snapshot'; public: boolean; nowUs: number },
): Promise<void> {
  await db
    .insertInto('templates')
    .values({
      template_id: template.templateId,
      team_id: template.teamId,
      kind: template.kind,
      public: template.public ? 1 : 0,
      created_by: null,
      created_at_us: template.nowUs,
      updated_at_us: template.nowUs,
      last_spawned_at_us: null,
      spawn_count: 0,
      build_count: 0,
    })
    .execute();
}

/** Gives a template a name in a namespace (empty: none). */
export async function nameTemplate(
  db: Db,
  name: { namespace: string; alias: string; templateId: string; nowUs: number },
): Promise<void> {
  await db
    .insertInto('template_names')
    .values({ namespace: name.namespace, alias: name.alias, template_id: name.templateId, created_at_us: name.nowUs })
    .execute();
}

type ReadyBuild = Omit<BuildRecord, 'status' | 'createdAtUs' | 'updatedAtUs' | 'finishedAtUs'>;

/** Adds a build that is ready at once, like a snapshot of a sandbox, and points `tag` at it. */
export async function addReadyBuild(
  db: Db,
  build: ReadyBuild,
  { sandboxId, tag, nowUs }: { sandboxId: string | null; tag: string; nowUs: number },
): Promise<void> {
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
      source_sandbox_id: sandboxId,
      request_json: null,
      created_at_us: nowUs,
      updated_at_us: nowUs,
      finished_at_us: nowUs,
    })
    .execute();
  await putTags(db, { ...build, tags: [tag], nowUs });
  await db
    .updateTable('templates')
    .set(update => ({ build_count: update('build_count', '+', 1), updated_at_us: nowUs }))
    .where('template_id', '=', build.templateId)
    .execute();
}
