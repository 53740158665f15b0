import { AtollError } from '../../../base/error.ts';
import type { BuildProtocol } from '../../../protocol/build.ts';
import type { BuildRecord } from '../../build/record.ts';
import type { Db } from '../../database/db.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { TemplateName } from '../record.ts';
import { layersByTemplate } from '../store/layers.ts';
import { namesOf, newestBuilds } from '../store/list.ts';
import { readableTemplate } from './list.ts';

/** What sandboxes of a template start from. */
export type ContentOfTemplate = {
  build: BuildRecord;
  layers: { digest: string; sizeBytes: number | null; sharedBy: { templateId: string; names: TemplateName[] }[] }[];
};

/**
 * The layers of the newest ready build of a team's template, lowest first, and which templates share them. Errors:
 * `not_found`, also where nothing was built; `forbidden` for a public template of another team; `invalid`.
 */
export async function readContent(
  { db, builder }: { db: Db; builder: Pick<BuildProtocol, 'layerBytes'> },
  team: TeamRecord,
  text: string,
): Promise<ContentOfTemplate> {
  const { templateId } = await readableTemplate(db, team, text);
  const build = (await newestBuilds(db, [templateId])).get(templateId)?.ready;
  if (!build) throw new AtollError('not_found', `Template "${text}" has no build that is ready`);
  // If a machine is away for a moment, the rest is answered all the same.
  const sizesOf = builder.layerBytes(build.layers).catch((): Record<string, number> => ({}));
  const [sizes, byTemplate] = await Promise.all([sizesOf, layersByTemplate(db, team.teamId)]);
  byTemplate.delete(templateId);
  const others = [...byTemplate].filter(([, digests]) => build.layers.some(digest => digests.has(digest)));
  const names = await namesOf(
    db,
    others.map(([id]) => id),
  );
  const layers = build.layers.map(digest => ({
    digest,
    sizeBytes: sizes[digest] ?? null,
    sharedBy: others
      .filter(([, digests]) => digests.has(digest))
      .map(([id]) => ({ templateId: id, names: names.get(id) ?? [] })),
  }));
  return { build, layers };
}
