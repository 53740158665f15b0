import { shownState, statesShownAs } from '../../../../protocol/state.ts';
import type { SandboxState } from '../../../../protocol/state.ts';
import { kindOf } from '../../../database/db.ts';
import type { Db } from '../../../database/db.ts';
import { prepared } from '../../../database/prepared.ts';
import type { ParameterOf } from '../../../database/prepared.ts';
import type { ListedSandbox } from '../../record.ts';
import { filtered, metadataLength, placeOf } from './list.ts';
import type { SandboxCursor, SandboxFilter, SandboxPageOptions } from './list.ts';
import { listedColumnNames, listedOfRow } from '../row.ts';

/**
 * Rows of a team that are searched in one piece: on SQLite nobody else is answered during that, for some milliseconds.
 * On PostgreSQL each piece costs a round trip.
 */
const rowsAtOnceMax = { sqlite: 250, postgres: 2_000 };

/** A page of search results: where the next one begins, null where nothing follows, and how many of all matches run. */
type FoundPage = { sandboxes: ListedSandbox[]; next: SandboxCursor | null; running: number };

type SearchOptions = { countsRunning: boolean; othersHad(ms: number): void; rowsAtOnce?: number };

/** What is known of a match before it is read. */
type Match = SandboxCursor & { state: SandboxState; bytes: number };

/**
 * A page like that of `listSandboxes`, but for a filter that needs all metadata: it searches in pieces, between which
 * others have their turn; `othersHad` is told how long. With `countsRunning` it searches all sandboxes; otherwise only
 * those of the page, and `running` means nothing.
 */
export async function searchSandboxes(
  db: Db,
  filter: SandboxFilter,
  page: SandboxPageOptions,
  { countsRunning, othersHad, rowsAtOnce = rowsAtOnceMax[kindOf(db)] }: SearchOptions,
): Promise<FoundPage> {
  const { order, after, limit, metadataBytes } = page;
  const pieces = piecesOf(db, filter.teamId, order, { rowsAtOnce, othersHad });
  const all = matchesOf(filter);
  const runningOnes = matchesOf({ ...filter, shown: ['running'] });
  const chosen: Match[] = [];
  let [running, bytes] = [0, 0];
  let isMore = false;
  if (countsRunning && after)
    for await (const piece of pieces({ until: after })) running += (await runningOnes(db, order, piece)).length;
  for await (const piece of pieces({ from: after })) {
    // After the page, the matches are only counted.
    const matches = await (isMore ? runningOnes : all)(db, order, piece);
    running += matches.filter(({ state }) => shownState(state) === 'running').length;
    for (const match of isMore ? [] : matches) {
      isMore = chosen.length === limit || bytes > metadataBytes;
      if (isMore) break;
      chosen.push(match);
      bytes += match.bytes;
    }
    if (isMore && !countsRunning) break;
  }
  return { sandboxes: await readAll(db, filter, chosen), next: isMore ? (chosen.at(-1) ?? null) : null, running };
}

/** Rows after `from`, up to `until`. */
type Bounds = { from?: SandboxCursor | undefined; until?: SandboxCursor | undefined };
type Order = 'asc' | 'desc';
type Places = { fromUs: number; fromId: string; untilUs: number; untilId: string };
type Word = Order | 'from' | 'until';

const placesOf = ({ from, until }: Bounds): Places => ({
  fromUs: from?.startedAtUs ?? 0,
  fromId: from?.sandboxId ?? '',
  untilUs: until?.startedAtUs ?? 0,
  untilId: until?.sandboxId ?? '',
});
const wordsOf = (order: Order, { from, until }: Bounds): Word[] => [
  order,
  ...(from ? (['from'] as const) : []),
  ...(until ? (['until'] as const) : []),
];

function within(query: ReturnType<typeof filtered>, parameter: ParameterOf<Places>, words: readonly Word[]) {
  const order = words.includes('asc') ? 'asc' : 'desc';
  const [from, until] = [
    placeOf('behind', order, parameter('fromUs'), parameter('fromId')),
    placeOf('until', order, parameter('untilUs'), parameter('untilId')),
  ];
  const behind = words.includes('from') ? query.where(from) : query;
  return (words.includes('until') ? behind.where(until) : behind)
    .orderBy('started_at_us', order)
    .orderBy('sandboxes.sandbox_id', order);
}

/**
 * The bounds of pieces of `rowsAtOnce` of a team's rows, whatever their content. Others have their turn between them.
 */
function piecesOf(
  db: Db,
  teamId: string,
  order: Order,
  { rowsAtOnce, othersHad }: Required<Omit<SearchOptions, 'countsRunning'>>,
) {
  return async function* ({ from, until }: Bounds): AsyncGenerator<Bounds> {
    for (let begin = from; ;) {
      const bounds = { from: begin, until };
      const values = { ...placesOf(bounds), teamId, skipped: rowsAtOnce - 1 };
      const [row] = await endOfPiece(db, values, wordsOf(order, bounds));
      const end = row && { startedAtUs: Number(row.started_at_us), sandboxId: row.sandbox_id };
      yield { from: begin, until: end ?? until };
      if (!end) return;
      begin = end;
      const since = performance.now();
      await new Promise(setImmediate);
      othersHad(performance.now() - since);
    }
  };
}

const endOfPiece = prepared<
  Places & { teamId: string; skipped: number },
  { started_at_us: number; sandbox_id: string },
  Word
>((db, parameter, words) =>
  within(db.selectFrom('sandboxes').where('team_id', '=', parameter('teamId')), parameter, words)
    .select(['started_at_us', 'sandboxes.sandbox_id'])
    .limit(1)
    .offset(parameter('skipped')),
);

type MatchRow = { id: string; started_at_us: number; state: SandboxState; bytes: number };

/** Searches for what a filter matches, with a query that is compiled to SQL once for all pieces. */
function matchesOf(filter: SandboxFilter): (db: Db, order: Order, piece: Bounds) => Promise<Match[]> {
  const query = prepared<Places, MatchRow, Word>((db, parameter, words) =>
    within(filtered(db, filter), parameter, words).select([
      'sandboxes.sandbox_id as id',
      'started_at_us',
      'state',
      metadataLength.as('bytes'),
    ]),
  );
  return async (db, order, piece) =>
    (await query(db, placesOf(piece), wordsOf(order, piece))).map(({ id, started_at_us, state, bytes }) => ({
      sandboxId: id,
      startedAtUs: Number(started_at_us),
      state,
      bytes: Number(bytes),
    }));
}

/** Reads the matches, in order; those that have ended meanwhile are left out. */
async function readAll(db: Db, { teamId, shown }: SandboxFilter, found: readonly Match[]): Promise<ListedSandbox[]> {
  if (found.length === 0) return [];
  const ids = found.map(({ sandboxId }) => sandboxId);
  const rows = await db
    .selectFrom('sandboxes')
    .select(listedColumnNames)
    .where('sandbox_id', 'in', ids)
    .where('team_id', '=', teamId)
    .where('state', 'in', shown.flatMap(statesShownAs))
    .execute();
  const byId = new Map(rows.map(row => [row.sandbox_id, listedOfRow(row)]));
  return ids.flatMap(id => byId.get(id) ?? []);
}
