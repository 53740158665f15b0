import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { repository } from '../support/platform.ts';

// A test that fails once and passes alone counts as passed, and is reported; nothing else is forgiven.

type Totals = { passed: number; failed: number; skipped: number; skips: string[]; failures: string[]; files: string[] };
type Suite = { name: string; only(file: string): Suite };
type Result = { suite: Suite; totals: Totals; unsteady: string[] };
const { repeatFailed } = (await import(join(repository, 'scripts/test/repeat.mjs'))) as {
  repeatFailed(
    results: Result[],
    runSuite: (suite: Suite, report: string) => Promise<Result>,
    report: string,
  ): Promise<void>;
};

const suiteOf = (name: string): Suite => ({ name, only: file => suiteOf(`${name} ${file}`) });
const resultOf = (name: string, files: string[], failed = files.length): Result => ({
  suite: suiteOf(name),
  totals: { passed: 10, failed, skipped: 0, skips: [], failures: files.map(file => `${file}: fails`), files },
  unsteady: [],
});

/** Repeats with a runner in which the `faulty` files fail again; answers what was run. */
async function repeat(results: Result[], faulty: string[] = []): Promise<string[]> {
  const ran: string[] = [];
  const run = async ({ name }: Suite) => {
    ran.push(name);
    return resultOf(
      name,
      faulty.filter(file => name.endsWith(file)),
    );
  };
  await repeatFailed(results, run, 'again');
  return ran;
}

test('what passes alone counts as passed, and is listed as unsteady', async () => {
  const results = [resultOf('api', ['a', 'a']), resultOf('unit', [])];
  expect(await repeat(results)).toEqual(['api a']);
  expect(results[0]).toMatchObject({
    totals: { passed: 12, failed: 0, failures: [], files: [] },
    unsteady: ['a: fails', 'a: fails'],
  });
});

test('what fails again stays a failure', async () => {
  const results = [resultOf('api', ['a', 'b'])];
  expect(await repeat(results, ['b'])).toEqual(['api a', 'api b']);
  expect(results[0]).toMatchObject({
    totals: { passed: 11, failed: 1, failures: ['b: fails'] },
    unsteady: ['a: fails'],
  });
});

test('many failures, or one without a file, are run no second time', async () => {
  for (const results of [
    [resultOf('api', ['a', 'b']), resultOf('node', ['c', 'd'])],
    [resultOf('api', ['a']), resultOf('types', [], 1)],
    [resultOf('api', ['a', ''])],
  ]) {
    const before = structuredClone(results.map(({ totals }) => totals));
    expect(await repeat(results)).toEqual([]);
    expect(results.map(({ totals }) => totals)).toEqual(before);
  }
});
