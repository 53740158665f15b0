import { chmod, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { lookThrough, rewriteImage } from './image-file.ts';
import { numberIn, withNumbers, type Field } from './protobuf.ts';

const pageBytes = 4096;

/** Fields of `pagemap_head` and `pagemap_entry` in CRIU's images/pagemap.proto. */
const head = { pagesId: 1 } as const;
const entry = { address: 1, pagesBefore: 2, flags: 4, pages: 5 } as const;
/** CRIU's marks of an entry: private memory of no file; in the file with the pages. Source: criu/include/pagemap.h. */
const mark = { later: 2, present: 4 } as const;

/** What is checked at a time. Source: native/snapshot-hash.h. */
const checkedBytes = 1 << 20;

/** What comes later, at least: of a sandbox, and of a piece. */
export type LaterMeasure = { sandboxBytes: number; pieceBytes: number };
/**
 * Less is back within a few hundredths of a second, all at once. Each piece is a place that is looked for whenever a
 * page is touched.
 */
export const muchMemory: LaterMeasure = { sandboxBytes: 32 << 20, pieceBytes: 1 << 20 };
/** For trying it. */
export const anyMemory: LaterMeasure = { sandboxBytes: 1, pieceBytes: pageBytes };
/** Lists of pages longer than this together are not gone through: their memory is in many pieces. */
const listBytesMax = 256 << 10;

/** Memory of a process, by its addresses, and where it is in the file with its pages. */
type Piece = { from: number; to: number; offset: number };

/** What is decided. `file`: an image with pages. */
export type ChosenPages = {
  /** What of each process comes later. */
  later: { pid: number; file: string; pieces: Piece[] }[];
  /** The rest, by whole checked pieces of an image: the numbers of the first and of the one behind the last. */
  now: { file: string; from: number; to: number }[];
};

type List = { name: string; pid: number; file: string; pieces: (Piece & { mayBeLater: boolean })[] };

/**
 * Decides which memory of the images in `directory` comes when its processes already run, and says so in the images of
 * `to`, which are links to them. Null, and nothing is changed, where all is to come at once. Later comes only what no
 * other process has at the same address: what processes have in common since a fork would no longer be one memory.
 * `bytesMax` is the sandbox's limit: a program that forks meanwhile gets a second copy.
 */
export async function chooseLaterPages(
  directory: string,
  to: string,
  { bytesMax, measure }: { bytesMax: number; measure: LaterMeasure },
): Promise<ChosenPages | null> {
  const names = (await readdir(directory)).filter(name => /^pagemap-\d+\.img$/.test(name));
  const sizes = await Promise.all(names.map(async name => (await stat(join(directory, name))).size));
  if (sizes.reduce((sum, size) => sum + size, 0) > listBytesMax) return null;
  const lists: List[] = [];
  for (const name of names) lists.push(await readList(directory, name, measure));
  keepShared(lists);
  const later = lists.map(({ pid, file, pieces }) => ({ pid, file, pieces: pieces.filter(piece => piece.mayBeLater) }));
  const bytes = bytesOf(later);
  if (bytes < measure.sandboxBytes || bytesOf(lists) + bytes > bytesMax) return null;
  for (const { name, pieces } of lists) {
    const addresses = new Set(pieces.filter(({ mayBeLater }) => mayBeLater).map(({ from }) => from));
    await rewriteList(join(directory, name), join(to, name), addresses);
  }
  return { later: later.filter(({ pieces }) => pieces.length > 0), now: lists.flatMap(neededNow) };
}

async function readList(directory: string, name: string, measure: LaterMeasure): Promise<List> {
  const list: List = { name, pid: Number(/\d+/.exec(name)?.[0]), file: '', pieces: [] };
  let offset = 0;
  await lookThrough(join(directory, name), fields => {
    const flags = flagsOf(fields);
    if (flags === null) return void (list.file = `pages-${numberIn(fields, head.pagesId)}.img`);
    const from = numberIn(fields, entry.address);
    const bytes = (numberIn(fields, entry.pages) || numberIn(fields, entry.pagesBefore)) * pageBytes;
    const mayBeLater = (flags & mark.later) > 0 && (flags & mark.present) > 0 && bytes >= measure.pieceBytes;
    list.pieces.push({ from, to: from + bytes, offset, mayBeLater });
    if (flags & mark.present) offset += bytes;
  });
  return list;
}

/** Where an image of pages holds something that does not come later. */
function neededNow({ file, pieces }: List): ChosenPages['now'] {
  const now: ChosenPages['now'] = [];
  for (const { from, to, offset, mayBeLater } of pieces) {
    if (mayBeLater) continue;
    const first = Math.floor(offset / checkedBytes);
    const end = Math.ceil((offset + to - from) / checkedBytes);
    const last = now.at(-1);
    if (last && first <= last.to) last.to = Math.max(last.to, end);
    else now.push({ file, from: first, to: end });
  }
  return now;
}

/** The marks of an entry; null for the head of a list, which has none. */
function flagsOf(fields: Field[]): number | null {
  return fields.some(({ number }) => number === entry.flags) ? numberIn(fields, entry.flags) : null;
}

/** What two processes have at the same address comes at once. */
function keepShared(lists: List[]): void {
  const pieces = lists.flatMap(list => list.pieces.map(piece => ({ piece, list })));
  let open: typeof pieces = [];
  for (const one of pieces.toSorted((a, b) => a.piece.from - b.piece.from)) {
    open = open.filter(({ piece }) => piece.to > one.piece.from);
    for (const other of open) if (other.list !== one.list) other.piece.mayBeLater = one.piece.mayBeLater = false;
    open.push(one);
  }
}

/** CRIU leaves out what is marked, and restores the rest. */
async function rewriteList(from: string, to: string, later: Set<number>): Promise<void> {
  await rm(to); // a link to the image, which others have, too
  await rewriteImage(from, to, fields => {
    const flags = flagsOf(fields);
    if (flags === null || !(flags & mark.later) || later.has(numberIn(fields, entry.address))) return fields;
    return withNumbers(fields, { [entry.flags]: flags & ~mark.later });
  });
  // The sandbox's own users open it.
  await chmod(to, (await stat(from)).mode & 0o777);
}

const bytesOf = (lists: { pieces: Piece[] }[]) =>
  lists.flatMap(({ pieces }) => pieces).reduce((sum, { from, to }) => sum + to - from, 0);
