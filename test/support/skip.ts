import { test } from 'bun:test';

/**
 * `test`, or a skipped test whose name says why: for what a host can't do, never for what does not work.
 * `npm test` lists every skip with its name.
 */
export function testUnless(reason: string | undefined): typeof test | ((name: string, ...rest: unknown[]) => void) {
  return reason === undefined ? test : (name: string) => test.skip(`${name} [skipped: ${reason}]`, () => {});
}
