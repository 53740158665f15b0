import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256Hex } from '../../../base/crypto/secret.ts';
import { SingleFlight } from '../../../base/concurrency/single-flight.ts';
import { unlessAborted } from '../../../base/concurrency/unless-aborted.ts';

/** What a step made: a layer, or null if it changed no file. */
type Outcome = { layer: string | null };

/** The outcome of a step, by the digest of all that it depends on. Times are epoch milliseconds. */
type CachedStep = Outcome & { key: string; usedAtMs: number };

/** How to get the outcome of a step. */
type GetOptions = {
  force: boolean;
  /**
   * Where `make` gets the outcome from, if strangers can send that as slowly as they like: only builds with the same
   * source then wait for it. Default: a source that takes the same time for every build.
   */
  source?: string;
  /** Ends the wait for another build's `make`. */
  signal?: AbortSignal;
  onHit(): void;
  make(): Promise<string | null>;
  /** Says whether the new outcome may serve others. Default: it may. */
  lasts?(layer: string | null): Promise<boolean>;
  /** Asked if the outcome is not known here. */
  ask?(key: string): Promise<Outcome | undefined>;
  /** Called for a new outcome, once it is safe on disk. */
  onMade?(step: Outcome & { key: string }): void;
};

/**
 * The outcomes of steps that ran before, by everything that they depend on. An entry is written after its layer is
 * safe on disk, and appears whole or not at all: after a crash a step is unknown, never half known.
 */
export type StepCache = {
  /**
   * The outcome of the step with these facts. Builds that ask at the same time share one `make` of the same source.
   * `isThere` tells whether a layer still exists.
   */
  get(facts: unknown, options: GetOptions): Promise<string | null>;
  list(): CachedStep[];
  remove(key: string): void;
};

/** Opens the cache in `dir`. An outcome whose layer `isThere` denies counts as unknown. */
export function createStepCache(dir: string, isThere: (layer: string) => boolean): StepCache {
  mkdirSync(dir, { recursive: true });
  const making = new SingleFlight<string, Outcome & { lasts: boolean }>();
  const fileOf = (key: string) => join(dir, `${key}.json`);

  const find = (key: string): Outcome | undefined => {
    try {
      const outcome = JSON.parse(readFileSync(fileOf(key), 'utf8')) as Outcome;
      if (outcome.layer !== null && !isThere(outcome.layer)) return undefined;
      const now = new Date();
      utimesSync(fileOf(key), now, now);
      return outcome;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT' || error instanceof SyntaxError) return undefined;
      throw error;
    }
  };
  const keep = async (key: string, outcome: Outcome) => {
    const temporary = `${fileOf(key)}.${process.pid}-${Math.random().toString(36).slice(2)}`;
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(JSON.stringify(outcome));
      await file.sync();
    } finally {
      await file.close();
    }
    renameSync(temporary, fileOf(key));
  };

  return {
    async get(facts, { force, source = '', signal, onHit, make, lasts, ask, onMade }) {
      const key = sha256Hex(JSON.stringify(facts));
      const flight = `${key} ${source}`;
      // Waits for another build's run of the step; if that fails, is given up or serves nobody else, it is this
      // build's turn.
      for (let other; !force && (other = making.underWay(flight));) {
        const ended = other.catch(() => undefined);
        const outcome = await (signal ? unlessAborted(ended, signal, 'nobody waits for the step any more') : ended);
        if (!outcome?.lasts) continue;
        onHit();
        return outcome.layer;
      }
      const known = force ? undefined : find(key);
      if (known) {
        onHit();
        return known.layer;
      }
      const makeAndKeep = async () => {
        const told = force ? undefined : await ask?.(key);
        if (told && (told.layer === null || isThere(told.layer))) {
          onHit();
          await keep(key, told);
          return { layer: told.layer, lasts: true };
        }
        const layer = await make();
        if (lasts && !(await lasts(layer))) return { layer, lasts: false };
        await keep(key, { layer });
        onMade?.({ key, layer });
        return { layer, lasts: true };
      };
      return (await (force && making.underWay(flight) ? makeAndKeep() : making.run(flight, makeAndKeep))).layer;
    },
    list: () =>
      readdirSync(dir)
        .filter(name => /^[0-9a-f]{64}\.json$/.test(name))
        .map(name => {
          const { layer } = JSON.parse(readFileSync(join(dir, name), 'utf8')) as Outcome;
          return { key: name.slice(0, -'.json'.length), layer, usedAtMs: statSync(join(dir, name)).mtimeMs };
        }),
    remove: key => rmSync(fileOf(key), { force: true }),
  };
}
