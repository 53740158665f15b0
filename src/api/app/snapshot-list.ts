import { AtollError } from '../../base/error.ts';
import { listSnapshots } from '../store/snapshot-list.ts';
import type { SnapshotFilter } from '../store/snapshot-list.ts';
import { namesOf } from '../store/template-list.ts';
import type { TeamRecord } from '../store/team.ts';
import type { App } from './context.ts';
import { pageOf, parsePlace } from './page-token.ts';
import { parseSandboxId } from './sandbox-find.ts';
import { findTemplate, parseReference } from './template-reference.ts';

export const snapshotPageMax = 100;

/** By what a snapshot is known. */
export type SnapshotName = { templateId: string; tag: string; /** `namespace/alias` */ names: string[] };

export type SnapshotQuery = { sandboxID?: string; name?: string; limit?: number; nextToken?: string };

/** One page of a team's snapshots, newest first. Throws `invalid` for a filter or token that can't be read. */
export async function listSnapshotsOf(app: App, team: TeamRecord, query: SnapshotQuery): Promise<{ items: SnapshotName[]; nextToken: string | null }> {
  const { db } = app.store;
  const limit = query.limit ?? snapshotPageMax;
  const after = query.nextToken === undefined ? undefined : parsePlace(query.nextToken);
  const filter: SnapshotFilter = { teamId: team.teamId };
  if (query.sandboxID !== undefined) filter.sandboxId = parseSandboxId(query.sandboxID);
  if (query.name !== undefined && !(await filterByName(app, team, query.name, filter))) return { items: [], nextToken: null };
  const found = await listSnapshots(db, filter, { limit: limit + 1, ...(after && { after }) });
  const { items, nextToken } = pageOf(found, limit, snapshot => ({ atUs: snapshot.takenAtUs, id: snapshot.buildId }));
  const names = await namesOf(db, [...new Set(items.map(snapshot => snapshot.templateId))]);
  const shown = (templateId: string) => (names.get(templateId) ?? []).map(({ namespace, alias }) => `${namespace}/${alias}`);
  return { items: items.map(({ templateId, tag }) => ({ templateId, tag, names: shown(templateId) })), nextToken };
}

/** False when no snapshot has that name. */
async function filterByName(app: App, team: TeamRecord, text: string, filter: SnapshotFilter): Promise<boolean> {
  if (text.trim() === '') throw new AtollError('invalid', 'name: must not be empty');
  const reference = parseReference(text, 'name');
  const template = await findTemplate(app, team, reference);
  if (!template) return false;
  filter.templateId = template.templateId;
  // An explicit tag, `default` included.
  if (/:/.test(text)) filter.tag = reference.tag ?? 'default';
  return true;
}
