import { chmod, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { lookThrough, rewriteImage } from './images/image-file.ts';
import { decodeFields, numberIn, withNumbers, type Field } from './images/protobuf.ts';

const pageBytes = 4096;

/** Fields of `pagemap_head` and `pagemap_entry` in CRIU's images/pagemap.proto. */
const head = { pagesId: 1 } as const;
const entry = { address: 1, pagesBefore: 2, flags: 4, pages: 5 } as const;
/** Fields of `mm_entry` and `vma_entry` in images/mm.proto and images/vma.proto. */
const memory = { mappings: 14 } as const;
const mapping = { from: 1, to: 2, flags: 6, advice: 9 } as const;
/** Source: mmap(2), `MAP_PRIVATE`, `MAP_ANONYMOUS` and `MAP_LOCKED`. */
const kind = { private: 0x2, anonymous: 0x20, locked: 0x20_00 } as const;
/** Source: madvise(2), `MADV_WIPEONFORK`; a bit for each advice. */
const wipeOnFork = 1 << 18;
/**
 * CRIU's marks of an entry: private memory without a file; in the file with the pages. Source: criu/include/pagemap.h.
 */
const mark = { later: 2, present: 4 } as const;

/** How many bytes are checked at a time. Source: native/snapshot-hash.h. */
const checkedBytes = 1 << 20;

/** The least memory that comes later: of a sandbox, and of a piece. */
export type LaterMeasure = { sandboxBytes: number; pieceBytes: number };
/**
 * Less memory is back within a few hundredths of a second, all at once. Each piece is a place that is searched
 * whenever a page is touched.
 */
export const muchMemory: LaterMeasure = { sandboxBytes: 32 << 20, pieceBytes: 1 << 20 };
/** For trying it out. */
export const anyMemory: LaterMeasure = { sandboxBytes: 1, pieceBytes: pageBytes };
/** If lists of pages are longer than this together, they are not read: the memory is in many pieces. */
const listBytesMax = 256 << 10;
/** The same for lists of mappings. */
const mappingsBytesMax = 512 << 10;

/** Memory of a process, by its addresses, and its place in the file with its pages. */
type Piece = { from: number; to: number; offset: number };

/** Addresses of a process. */
type Area = { from: number; to: number };

/** The decision. `file` is an image with pages. */
export type ChosenPages = {
  /** The part of each process that comes later, and all of its memory that the kernel watches meanwhile. */
  later: { pid: number; file: string; areas: Area[]; pieces: Piece[] }[];
  /** The rest, in whole checked pieces of an image: the numbers of the first piece and of the one after the last. */
  now: { file: string; from: number; to: number }[];
};

type List = { name: string; pid: number; file: string; areas: Area[]; pieces: (Piece & { mayBeLater: boolean })[] };

/**
 * Decides which memory of the images in `directory` comes while its processes already run, and records that in the
 * images of `to`, which are links to them. Null, and nothing is changed, if all is to come at once. Only memory comes
 * later that no other process has at the same address: memory that processes have shared since a fork would no longer
 * be shared. `bytesMax` is the sandbox's limit: a program that forks meanwhile gets a second copy.
 */
export async function chooseLaterPages(
  directory: string,
  to: string,
  { bytesMax, measure }: { bytesMax: number; measure: LaterMeasure },
): Promise<ChosenPages | null> {
  const all = new Set(await readdir(directory));
  const names = [...all].filter(name => /^pagemap-\d+\.img$/.test(name));
  if (!names.every(name => all.has(mappingsOf(name)))) return null;
  const pages = [...all].filter(name => /^pages-\d+\.img$/.test(name));
  if ((await bytesOfFiles(directory, pages)) < measure.sandboxBytes) return null;
  if ((await bytesOfFiles(directory, names)) > listBytesMax) return null;
  if ((await bytesOfFiles(directory, names.map(mappingsOf))) > mappingsBytesMax) return null;
  const lists: List[] = [];
  for (const name of names) lists.push(await readList(directory, name, measure));
  keepShared(lists);
  const later = lists.map(({ pid, file, areas, pieces }) => ({
    ...{ pid, file, areas },
    pieces: pieces.filter(piece => piece.mayBeLater),
  }));
  const bytes = bytesOf(later);
  if (bytes < measure.sandboxBytes || bytesOf(lists) + bytes > bytesMax) return null;
  for (const { name, pieces } of lists) {
    const addresses = new Set(pieces.filter(({ mayBeLater }) => mayBeLater).map(({ from }) => from));
    await rewriteList(join(directory, name), join(to, name), addresses);
  }
  return { later: later.filter(({ pieces }) => pieces.length > 0), now: lists.flatMap(neededNow) };
}

const mappingsOf = (listName: string) => listName.replace('pagemap', 'mm');

async function bytesOfFiles(directory: string, names: string[]): Promise<number> {
  const sizes = await Promise.all(names.map(async name => (await stat(join(directory, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function readList(directory: string, name: string, measure: LaterMeasure): Promise<List> {
  const { areas, wiped } = await readMappings(join(directory, mappingsOf(name)));
  const list: List = { name, pid: Number(/\d+/.exec(name)?.[0]), file: '', areas, pieces: [] };
  let offset = 0;
  await lookThrough(join(directory, name), fields => {
    const flags = flagsOf(fields);
    if (flags === null) return void (list.file = `pages-${numberIn(fields, head.pagesId)}.img`);
    const from = numberIn(fields, entry.address);
    const bytes = (numberIn(fields, entry.pages) || numberIn(fields, entry.pagesBefore)) * pageBytes;
    const to = from + bytes;
    const mayBeLater =
      (flags & mark.later) > 0 &&
      (flags & mark.present) > 0 &&
      bytes >= measure.pieceBytes &&
      !wiped.some(area => area.from < to && area.to > from);
    list.pieces.push({ from, to, offset, mayBeLater });
    if (flags & mark.present) offset += bytes;
  });
  return list;
}

/**
 * What the kernel will watch, which is what CRIU takes for private memory without a file (criu/include/vma.h,
 * `vma_entry_can_be_lazy`); and `wiped`: what a child must find empty. The kernel does not report that, so it must be
 * there before anybody forks.
 */
async function readMappings(path: string): Promise<{ areas: Area[]; wiped: Area[] }> {
  const areas: Area[] = [];
  const wiped: Area[] = [];
  const wanted = kind.private | kind.anonymous;
  await lookThrough(path, fields => {
    for (const field of fields) {
      if (field.number !== memory.mappings || field.wire !== 2) continue;
      const found = decodeFields(field.value);
      const area = { from: numberIn(found, mapping.from), to: numberIn(found, mapping.to) };
      const advice = found.find(({ number }) => number === mapping.advice);
      if ((numberIn(found, mapping.flags) & (wanted | kind.locked)) === wanted) areas.push(area);
      if (advice?.wire === 0 && advice.value & BigInt(wipeOnFork)) wiped.push(area);
    }
  });
  return { areas, wiped };
}

/** The parts of an image of pages that do not come later. */
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

/** Makes memory that two processes have at the same address come at once. */
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
