import type { Selectable } from 'kysely';
import type { Db } from '../../database/db.ts';
import { prepared } from '../../database/prepared.ts';
import type { TemplateTable } from '../../database/schema.ts';
import { buildColumnNames, buildOfRow, type StoredBuild, templateColumnNames, templateOfRow } from './row.ts';
import type { BuildRecord } from '../../build/record.ts';
import type { TemplateRecord } from '../record.ts';

/** The template with a name in a namespace (empty: no namespace). */
export async function templateByName(db: Db, namespace: string, alias: string): Promise<TemplateRecord | null> {
  const [row] = await byName(db, { namespace, alias });
  return row ? templateOfRow(row) : null;
}

const byName = prepared<{ namespace: string; alias: string }, Selectable<TemplateTable>>((db, parameter) =>
  db
    .selectFrom('template_names')
    .innerJoin('templates', 'templates.template_id', 'template_names.template_id')
    .select(templateColumnNames)
    .where('namespace', '=', parameter('namespace'))
    .where('alias', '=', parameter('alias')),
);

/** The template with this ID, or null. */
export async function templateById(db: Db, templateId: string): Promise<TemplateRecord | null> {
  const row = await db.selectFrom('templates').selectAll().where('template_id', '=', templateId).executeTakeFirst();
  return row ? templateOfRow(row) : null;
}

/** The newest ready build with `tag`, by the newest assignment. */
export async function taggedBuild(db: Db, templateId: string, tag: string): Promise<BuildRecord | null> {
  const [row] = await newestTagged(db, { templateId, tag });
  return row ? buildOfRow(row) : null;
}

const newestTagged = prepared<{ templateId: string; tag: string }, StoredBuild>((db, parameter) =>
  db
    .selectFrom('build_tags')
    .innerJoin('builds', 'builds.build_id', 'build_tags.build_id')
    .select(buildColumnNames)
    .where('build_tags.template_id', '=', parameter('templateId'))
    .where('tag', '=', parameter('tag'))
    .where('status', '=', 'ready')
    .orderBy('assigned_at_us', 'desc')
    .limit(1),
);

/** The ready build with this ID, if it belongs to the template. */
export async function readyBuild(db: Db, templateId: string, buildId: string): Promise<BuildRecord | null> {
  const row = await db
    .selectFrom('builds')
    .selectAll()
    .where('build_id', '=', buildId)
    .where('template_id', '=', templateId)
    .where('status', '=', 'ready')
    .executeTakeFirst();
  return row ? buildOfRow(row) : null;
}

/** Every name of a template, the oldest first. */
export async function namesOf(db: Db, templateId: string): Promise<{ namespace: string; alias: string }[]> {
  return db
    .selectFrom('template_names')
    .select(['namespace', 'alias'])
    .where('template_id', '=', templateId)
    .orderBy('created_at_us')
    .orderBy('alias')
    .execute();
}

/** The first alias that a template got, with or without a namespace. */
export async function firstAlias(db: Db, templateId: string): Promise<string | null> {
  const [row] = await oldestName(db, { templateId });
  return row?.alias ?? null;
}

const oldestName = prepared<{ templateId: string }, { alias: string }>((db, parameter) =>
  db
    .selectFrom('template_names')
    .select('alias')
    .where('template_id', '=', parameter('templateId'))
    .orderBy('created_at_us')
    .orderBy('alias')
    .limit(1),
);
