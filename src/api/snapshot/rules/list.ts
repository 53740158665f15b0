import { AtollError } from '../../../base/error.ts';
import { listSnapshots } from '../store/list.ts';
import type { SnapshotFilter } from '../store/list.ts';
import { namesOf } from '../../template/store/list.ts';
import { pageOf, parseCursor } from '../../database/cursor.ts';
import { parseSandboxId } from '../../sandbox/rules/find.ts';
import { findTemplate, parseReference } from '../../template/rules/reference.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Db } from '../../database/db.ts';

/** The most entries on a page, and the default. */
export const snapshotPageMax = 100;

/** The names of a snapshot. */
export type SnapshotName = { templateId: string; tag: string; /** `namespace/alias` */ names: string[] };

/** Which snapshots to list. `name` and `nextToken` are as in the request. */
type SnapshotQuery = { sandboxId?: string; name?: string; limit?: number; nextToken?: string };

/** One page of a team's snapshots, newest first. Throws `invalid` for a filter or token that can't be read. */
export async function listSnapshotsOf(
  db: Db,
  team: TeamRecord,
  query: SnapshotQuery,
): Promise<{ items: SnapshotName[]; nextToken: string | null }> {
  const limit = query.limit ?? snapshotPageMax;
  const after = query.nextToken === undefined ? undefined : parseCursor(query.nextToken);
  const filter: SnapshotFilter = { teamId: team.teamId };
  if (query.sandboxId !== undefined) filter.sandboxId = parseSandboxId(query.sandboxId);
  if (query.name !== undefined && !(await filterByName(db, team, query.name, filter)))
    return { items: [], nextToken: null };
  const found = await listSnapshots(db, filter, { limit: limit + 1, ...(after && { after }) });
  const { items, nextToken } = pageOf(found, limit, snapshot => ({ atUs: snapshot.takenAtUs, id: snapshot.buildId }));
  const names = await namesOf(db, [...new Set(items.map(snapshot => snapshot.templateId))]);
  const shown = (templateId: string) =>
    (names.get(templateId) ?? []).map(({ namespace, alias }) => `${namespace}/${alias}`);
  return { items: items.map(({ templateId, tag }) => ({ templateId, tag, names: shown(templateId) })), nextToken };
}

/** False when no snapshot has that name. */
async function filterByName(db: Db, team: TeamRecord, text: string, filter: SnapshotFilter): Promise<boolean> {
  if (text.trim() === '') throw new AtollError('invalid', 'name: must not be empty');
  const reference = parseReference(text, 'name');
  const template = await findTemplate(db, team, reference);
  if (!template) return false;
  filter.templateId = template.templateId;
  // An explicit tag, `default` included.
  if (/:/.test(text)) filter.tag = reference.tag ?? 'default';
  return true;
}
