import { test } from 'bun:test';

type Skipped = (name: string, ...rest: unknown[]) => void;

/**
 * `test`, or a skipped test whose name gives the reason: for what a host can't do, not for what does not work. `npm
 * test` lists every skip with its name.
 */
export function testUnless(reason: string | undefined): typeof test | Skipped {
  return reason === undefined ? test : skippedFor(reason);
}

/**
 * The same for a test that runs in parallel with others of its file: it shares nothing that it uses, and mostly waits.
 */
export function concurrentTestUnless(reason: string | undefined): typeof test.concurrent | Skipped {
  return reason === undefined ? test.concurrent : skippedFor(reason);
}

const skippedFor = (reason: string) => (name: string) => test.skip(`${name} [skipped: ${reason}]`, () => {});
