import { createFairSemaphore, type FairSemaphore } from '../../base/concurrency/fair-semaphore.ts';
import { createSemaphore, type Semaphore } from '../../base/concurrency/semaphore.ts';

/**
 * How many programs the helper runs at a time, by their purpose: the sum is `childrenMax` in native/helper.c. Others
 * wait. A program of the first two kinds may wait for one of the other kinds, and those wait for none.
 */
export const programsAtOnce = {
  /** A runtime, or CRIU that restores, until the agent in the sandbox serves or the start has failed. */
  start: 48,
  /** CRIU keeps the memory of a sandbox. */
  dump: 32,
  /** Runs beside a dump that has its place, and waits for it. */
  follow: 32,
  /** Reads or copies a whole disk before a start, or for a build. */
  ahead: 16,
  /** Looks through a disk, or all that is kept, before a resume. */
  check: 16,
  /** Any other that may take long: it writes out what is kept, and a sandbox may stand still meanwhile. */
  long: 32,
  /** Any other. */
  short: 32,
  /** Lets a frozen sandbox run on: undoes a checkpoint, or copies a volume that is held for that. */
  release: 16,
} as const;

/** How many of these places are for teams that run no program of that kind: some programs take minutes. */
export const sparePlaces = { dump: 4, check: 2 } as const satisfies Partial<Record<ProgramKind, number>>;

/** What a program is for. */
export type ProgramKind = keyof typeof programsAtOnce;

/** A program with a longer bound may take long. */
const shortMs = 60_000;

/** Decides when each program may begin. */
type ProgramPlaces = {
  /**
   * Runs `program` when its kind has a place; it holds the place until it settles. `teamId` is the team that it
   * belongs to; absent: no team is known. For kinds with spare places, teams take turns.
   */
  run<T>(kind: ProgramKind, program: () => Promise<T>, teamId?: string): Promise<T>;
};

/** The kind of a program of which only the bound is known. */
export const kindByTime = (timeoutMs: number): ProgramKind => (timeoutMs > shortMs ? 'long' : 'short');

/** The places of one helper. */
export function createProgramPlaces(): ProgramPlaces {
  const semaphores = Object.fromEntries(
    Object.entries(programsAtOnce).map(([kind, atOnce]) => [kind, createSemaphore(atOnce)]),
  ) as Record<ProgramKind, Semaphore>;
  const fair = new Map<ProgramKind, FairSemaphore>(
    (Object.keys(sparePlaces) as (keyof typeof sparePlaces)[]).map(kind => [
      kind,
      createFairSemaphore(programsAtOnce[kind] - sparePlaces[kind], sparePlaces[kind]),
    ]),
  );
  return { run: (kind, program, teamId) => fair.get(kind)?.run(teamId, program) ?? semaphores[kind].run(program) };
}
