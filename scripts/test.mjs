// `npm test`: prepares the checkout and runs every suite. `npm test -- NAME …` runs only those suites.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepare } from './setup/prepare.mjs';
import { bunPath } from './setup/npm-packages.mjs';
import { Problem } from './setup/problem.mjs';
import { step } from './setup/progress.mjs';
import { run } from './setup/run.mjs';
import { coverageOf } from './test/coverage.mjs';
import { repeatFailed } from './test/repeat.mjs';
import { graceMs, killGroup, runSuite } from './test/run-suite.mjs';
import { runSuites } from './test/schedule.mjs';
import { coverageFolder, longSuites, suitesOf } from './test/suites.mjs';
import { totalsOf } from './test/totals.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Whether a suite is the named one, or one of the named ones. */
const isOf = (name, wanted) => name === wanted || name.startsWith(`${wanted} `);
const isLong = name => longSuites.some(long => isOf(name, long.name));

const children = new Set();
let interrupted = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    interrupted = true;
    for (const { pid } of children) killGroup(pid, 'SIGTERM');
    setTimeout(() => process.exit(130), graceMs).unref();
  });
}

const names = process.argv.slice(2);
/** Suites that start no sandbox. */
const withoutSandboxes = ['types', 'tidy', 'unit', 'wire', 'fuzz', 'native', 'simulation', 'simulation-long'];

try {
  await prepare(root, { forTests: true });
  if (names.length === 0 || names.some(name => !withoutSandboxes.includes(name)))
    await step('Making the base template where there is none', () =>
      run([bunPath(root), 'test/node/support/make-base.ts'], { cwd: root }),
    );
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  process.stdout.write(`\nThe tests could not be set up: ${error.message}\n0 passed, 1 failed, 0 skipped\n`);
  process.exit(1);
}

// Only long suites fetch and build this: other tests that need it are skipped, and say so.
if (names.some(isLong)) process.env.LONG_TESTS = '1';
const reports = mkdtempSync(join(tmpdir(), 'atoll-test-'));
const chosen = suitesOf(root).filter(({ name }) =>
  names.length === 0 ? !isLong(name) : names.some(wanted => isOf(name, wanted)),
);
const results = [];
const lines = [];
if (names.length === 0)
  lines.push(...longSuites.map(({ name, script }) => `– ${name}: NOT RUN; \`npm run ${script}\` does`));
try {
  await runSuites(chosen, async (index, suite) => {
    if (!interrupted) results[index] = await report(suite, join(reports, `${index}`));
  });
  if (!interrupted) await repeatFailed(results, report, join(reports, 'again'));
  lines.unshift(...results.filter(Boolean).map(summaryOf));
  lines.push(
    coverageOf(
      root,
      chosen.map((_, index) => coverageFolder(join(reports, `${index}`))),
    ),
  );
} finally {
  rmSync(reports, { recursive: true, force: true });
}
const sum = { passed: 0, failed: 0, skipped: 0 };
for (const { totals } of results.filter(Boolean)) for (const key of Object.keys(sum)) sum[key] += totals[key];
if (chosen.length === 0) {
  lines.push(`No suite is named ${names.join(' or ')}.`);
  sum.failed = 1;
}
// The reader of a pipe may lag behind: what it has not received when the process ends is lost.
process.stdout.write(
  `\n=== summary ===\n${lines.filter(Boolean).join('\n')}\n\n${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped\n`,
  () => process.exit(interrupted ? 130 : sum.failed > 0 ? 1 : 0),
);

/** Runs a suite, prints its output in one piece, and answers its counts. */
async function report(suite, file) {
  process.stdout.write(`… ${suite.name}\n`);
  const startedAt = Date.now();
  const { exitCode, output } = await runSuite(suite, { root, report: file, children });
  process.stdout.write(`\n=== ${suite.name} ===\n`);
  process.stdout.write(output);
  const totals = totalsOf(suite.kind, file, exitCode);
  const result = { suite, totals, seconds: Math.round((Date.now() - startedAt) / 1000), unsteady: [] };
  process.stdout.write(`${summaryOf(result)}\n`);
  return result;
}

/** Failures and skips are repeated at the end: often only the end of a long output is kept. */
function summaryOf({ suite, totals, seconds, unsteady }) {
  return [
    `${totals.failed > 0 ? '✗' : '✓'} ${suite.name}: ${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped (${seconds} s)`,
    ...totals.failures.map(failure => `  FAILED ${failure}`),
    ...unsteady.map(failure => `  UNSTEADY failed beside other suites, passed when run again by itself: ${failure}`),
    ...totals.skips.map(skip => `  SKIPPED ${skip}`),
  ].join('\n');
}
