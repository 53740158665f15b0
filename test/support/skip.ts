import { test } from 'bun:test';

type Skipped = (name: string, ...rest: unknown[]) => void;

/**
 * `test`, or a skipped test whose name says why: for what a host can't do, never for what does not work.
 * `npm test` lists every skip with its name.
 */
export function testUnless(reason: string | undefined): typeof test | Skipped {
  return reason === undefined ? test : skippedFor(reason);
}

/** The same for a test that runs beside the others of its file that do: it has all that it uses for itself, and waits. */
export function concurrentTestUnless(reason: string | undefined): typeof test.concurrent | Skipped {
  return reason === undefined ? test.concurrent : skippedFor(reason);
}

const skippedFor = (reason: string) => (name: string) => test.skip(`${name} [skipped: ${reason}]`, () => {});
