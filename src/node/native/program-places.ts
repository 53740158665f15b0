import { createSemaphore, type Semaphore } from '../../base/concurrency/semaphore.ts';

/**
 * How many programs the helper runs at a time, by what they are for: the sum is `childrenMax` in native/helper.c. The
 * others wait. A program of the first two kinds may wait for one of the others, which wait for nobody's.
 */
export const programsAtOnce = {
  /** A runtime, or CRIU that restores, until the agent in the sandbox serves or the start has failed. */
  start: 48,
  /** CRIU keeps the memory of a sandbox. */
  dump: 32,
  /** Reads or copies a whole disk before a start, or for a build. */
  ahead: 16,
  /** Looks through a disk, or all that is kept, before a resume. */
  check: 16,
  /** Any other that may take long: it writes out what is kept, and a sandbox may stand still for it. */
  long: 32,
  /** Any other. */
  short: 32,
  /** What stands still goes on by it: a checkpoint is undone, or a volume copied that is held for that. */
  release: 16,
} as const;

/** What a program is for. */
export type ProgramKind = keyof typeof programsAtOnce;

/** A program whose bound is beyond this may take long. */
const shortMs = 60_000;

/** Says when each program may begin. */
type ProgramPlaces = {
  /** Runs `program` when its kind has a place; its place is taken until it settles. */
  run<T>(kind: ProgramKind, program: () => Promise<T>): Promise<T>;
};

/** The kind of a program of which nothing is said but its bound. */
export const kindByTime = (timeoutMs: number): ProgramKind => (timeoutMs > shortMs ? 'long' : 'short');

/** The places of one helper. */
export function createProgramPlaces(): ProgramPlaces {
  const semaphores = Object.fromEntries(
    Object.entries(programsAtOnce).map(([kind, atOnce]) => [kind, createSemaphore(atOnce)]),
  ) as Record<ProgramKind, Semaphore>;
  return { run: (kind, program) => semaphores[kind].run(program) };
}
