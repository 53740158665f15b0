import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repository } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';

// The closing line of `npm test` decides whether a run counts as green: it must count what real runners report.

type Totals = { passed: number; failed: number; skipped: number; skips: string[]; failures: string[]; files: string[] };
const { totalsOf } = (await import(join(repository, 'scripts/test/totals.mjs'))) as {
  totalsOf(kind: string, report: string, exitCode: number): Totals;
};

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'atoll-totals-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

/** Assembled: a test of ours that is skipped must not look like this one. */
const skip = 'skip';
const cases = `
test('passes', () => {});
test('passes too, with <odd> & "quoted" words', () => {});
test('fails', () => { throw new Error('on purpose'); });
test.${skip}('left out [skipped: no such device]', () => {});
`;

test('Bun’s report', async () => {
  writeFileSync(
    join(dir, 'sample.test.ts'),
    `import { test, describe } from 'bun:test';\ndescribe('group', () => {${cases}});`,
  );
  const report = join(dir, 'junit.xml');
  const { exitCode } = await runToEnd(
    [process.execPath, 'test', '--reporter=junit', `--reporter-outfile=${report}`, './sample.test.ts'],
    { cwd: dir },
  );
  expect(totalsOf('junit', report, exitCode ?? 1)).toEqual({
    passed: 2,
    failed: 1,
    skipped: 1,
    skips: ['left out [skipped: no such device]'],
    failures: [expect.stringMatching(/^.*sample\.test\.ts: fails\n.*on purpose/)],
    files: [expect.stringMatching(/sample\.test\.ts$/)],
  });
});

test('Node’s report', async () => {
  writeFileSync(
    join(dir, 'sample.mjs'),
    `import { test, describe } from 'node:test';\ndescribe('group', () => {${cases}});`,
  );
  const report = join(dir, 'report.tap');
  const { exitCode } = await runToEnd(
    ['node', '--test', '--test-reporter=tap', `--test-reporter-destination=${report}`, join(dir, 'sample.mjs')],
    { cwd: dir },
  );
  expect(totalsOf('tap', report, exitCode ?? 1)).toMatchObject({
    passed: 2,
    failed: 1,
    skipped: 1,
    skips: ['left out [skipped: no such device]'],
    failures: [expect.stringMatching(/^fails\n.*on purpose/)],
    files: [expect.stringMatching(/sample\.mjs$/)],
  });
});

test('a file that can’t be loaded is a failure', async () => {
  writeFileSync(
    join(dir, 'broken.test.ts'),
    `import './no-such-file.ts';\nimport { test } from 'bun:test';\ntest('x', () => {});`,
  );
  const report = join(dir, 'broken.xml');
  const { exitCode } = await runToEnd(
    [process.execPath, 'test', '--reporter=junit', `--reporter-outfile=${report}`, './broken.test.ts'],
    { cwd: dir },
  );
  expect(totalsOf('junit', report, exitCode ?? 1).failed).toBeGreaterThan(0);
});

test('a runner that dies, reports nothing, or ran nothing is a failure', () => {
  expect(totalsOf('junit', join(dir, 'missing'), 137)).toMatchObject({ passed: 0, failed: 1 });
  expect(totalsOf('tap', join(dir, 'missing'), 0)).toMatchObject({ passed: 0, failed: 1 });
  expect(totalsOf('exit', '', 2)).toMatchObject({ passed: 0, failed: 1 });
  expect(totalsOf('exit', '', 0)).toMatchObject({ passed: 1, failed: 0 });
});
