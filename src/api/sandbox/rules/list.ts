import { AtollError } from '../../../base/error.ts';
import { type ShownState, shownState } from '../../../protocol/state.ts';
import { countSandboxes, listSandboxes } from '../store/list/list.ts';
import type { SandboxFilter, SandboxCursor, SandboxPageOptions } from '../store/list/list.ts';
import { searchSandboxes } from '../store/list/search.ts';
import { formatTime } from '../../../base/time.ts';
import { parseTime } from '../../../base/clock.ts';
import { parseMetadataFilter } from './metadata-filter.ts';
import { findTemplate, parseReference } from '../../template/rules/reference.ts';
import type { ListedSandbox } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { Db } from '../../database/db.ts';

/** The most sandboxes on a page, and the default. */
export const listPageMax = 100;

/** Bytes of metadata on a page, or in the list without pages: anything beyond goes to the next page. */
const metadataBytesMax = { page: 4 * 1024 ** 2, unpaged: 32 * 1024 ** 2 };

/** All running sandboxes of a team, newest first. Throws `precondition` where that is too much. */
export async function listRunning(db: Db, team: TeamRecord, metadata: string | undefined): Promise<ListedSandbox[]> {
  const filter: SandboxFilter = { teamId: team.teamId, shown: ['running'], metadata: parseMetadataFilter(metadata) };
  const page = { order: 'desc', limit: unpagedMax, metadataBytes: metadataBytesMax.unpaged } as const;
  const { sandboxes, isMore } = await listSandboxes(db, filter, page);
  if (isMore)
    throw new AtollError(
      'precondition',
      `The metadata of these sandboxes has more than ${metadataBytesMax.unpaged} bytes: GET /v2/sandboxes has pages`,
    );
  return sandboxes;
}

/** Bounds the route without pages; no team may run more sandboxes at once. */
const unpagedMax = 100_000;

/** Which sandboxes to list. `metadata`, `startedAfter` and `nextToken` are as in the request. */
type ListQuery = {
  metadata?: string;
  state?: readonly ShownState[];
  order?: 'asc' | 'desc';
  startedAfter?: string;
  template?: string;
  nodeId?: string;
  text?: string;
  nextToken?: string;
  limit?: number;
};

/** A page of sandboxes. */
type SandboxPage = {
  sandboxes: ListedSandbox[];
  nextToken: string | null;
  /** Matching running sandboxes of all pages; null when the request excludes running ones. */
  totalRunning: number | null;
};

/**
 * One page of a team's sandboxes, shorter where their metadata is long. `othersHad` is told how long others had their
 * turn in the middle of it. Throws `invalid` for a filter or token that can't be read.
 */
export async function listPage(
  db: Db,
  team: TeamRecord,
  query: ListQuery,
  othersHad: (ms: number) => void,
): Promise<SandboxPage> {
  const shown = query.state?.length ? query.state : (['running', 'paused'] as const);
  const order = query.order ?? 'desc';
  const limit = query.limit ?? listPageMax;
  const after = query.nextToken === undefined ? undefined : parseToken(query.nextToken, order);
  const filter: SandboxFilter = { teamId: team.teamId, shown, metadata: parseMetadataFilter(query.metadata) };
  if (query.startedAfter !== undefined) filter.startedAfterUs = startedAfter(query.startedAfter);
  if (query.nodeId !== undefined) filter.nodeId = query.nodeId;
  if (query.text !== undefined) filter.text = query.text;
  if (query.template !== undefined) {
    const templateId = await templateIdOf(db, team, query.template);
    if (templateId === null)
      return { sandboxes: [], nextToken: null, totalRunning: shown.includes('running') ? 0 : null };
    filter.templateId = templateId;
  }
  const page = { order, limit, metadataBytes: metadataBytesMax.page, ...(after && { after }) };
  if (filter.text !== undefined) return await searchPage(db, filter, page, othersHad);
  const { sandboxes, isMore } = await listSandboxes(db, filter, page);
  const last = sandboxes.at(-1);
  const running = () =>
    // All matches are known already, so they are not counted again.
    after || isMore
      ? countSandboxes(db, { ...filter, shown: ['running'] })
      : sandboxes.filter(({ state }) => shownState(state) === 'running').length;
  return {
    sandboxes,
    nextToken: isMore && last ? formatToken(last, order) : null,
    totalRunning: shown.includes('running') ? await running() : null,
  };
}

/** A page of sandboxes that contain a text, which means reading all metadata. */
async function searchPage(
  db: Db,
  filter: SandboxFilter,
  page: SandboxPageOptions,
  othersHad: (ms: number) => void,
): Promise<SandboxPage> {
  const countsRunning = filter.shown.includes('running');
  const { sandboxes, next, running } = await searchSandboxes(db, filter, page, { countsRunning, othersHad });
  return { sandboxes, nextToken: next && formatToken(next, page.order), totalRunning: countsRunning ? running : null };
}

function startedAfter(text: string): number {
  const us = parseTime(text);
  if (us === null) throw new AtollError('invalid', `startedAfter: "${text}" is not an RFC 3339 date-time`);
  return us;
}

async function templateIdOf(db: Db, team: TeamRecord, text: string): Promise<string | null> {
  const template = await findTemplate(db, team, parseReference(text, 'template'));
  // The ID of a snapshot contains one; which build it selects makes no difference here.
  if (text.includes(':') && template?.kind !== 'snapshot')
    throw new AtollError('invalid', 'template: must not have a tag');
  return template?.templateId ?? null;
}

/** A token is a place and a direction, so that one for the other direction is noticed. */
function formatToken(place: SandboxCursor, order: 'asc' | 'desc'): string {
  const suffix = order === 'asc' ? '__asc' : '';
  return Buffer.from(`${formatTime(place.startedAtUs)}__${place.sandboxId}${suffix}`).toString('base64url');
}

function parseToken(token: string, order: 'asc' | 'desc'): SandboxCursor {
  const [time = '', sandboxId = '', direction = 'desc', ...rest] = Buffer.from(token, 'base64url')
    .toString()
    .split('__');
  const startedAtUs = parseTime(time);
  if (
    startedAtUs === null ||
    !Number.isSafeInteger(startedAtUs) ||
    !/^[a-z0-9]+$/.test(sandboxId) ||
    direction !== order ||
    rest.length > 0
  ) {
    throw new AtollError('invalid', `nextToken: is not a token that a page in the order "${order}" gave`);
  }
  return { startedAtUs, sandboxId };
}
