// `npm test`: prepares the checkout and runs every suite. `npm test -- NAME …` runs those suites alone.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { prepare } from './setup/prepare.mjs';
import { Problem } from './setup/problem.mjs';
import { suitesOf } from './test/suites.mjs';
import { totalsOf } from './test/totals.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** How long a suite gets to end by itself once it was told to, ms. */
const graceMs = 10_000;

let current;
let interrupted = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    interrupted = true;
    if (current) killGroup(current.pid, 'SIGTERM');
    setTimeout(() => process.exit(130), graceMs).unref();
  });
}

try {
  await prepare(root, { forTests: true });
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  process.stdout.write(`\nThe tests could not be set up: ${error.message}\n0 passed, 1 failed\n`);
  process.exit(1);
}

const reports = mkdtempSync(join(tmpdir(), 'atoll-test-'));
const wanted = process.argv.slice(2);
const sum = { passed: 0, failed: 0, skipped: 0 };
const lines = [];
try {
  for (const suite of suitesOf(root)) {
    if (interrupted) break;
    if (wanted.length > 0 && !wanted.some(name => suite.name === name || suite.name.startsWith(`${name} `))) continue;
    process.stdout.write(`\n=== ${suite.name} ===\n`);
    const startedAt = Date.now();
    const report = join(reports, `${lines.length}`);
    const exitCode = await runSuite(suite, report);
    const totals = totalsOf(suite.kind, report, exitCode);
    for (const key of Object.keys(sum)) sum[key] += totals[key];
    lines.push(`${totals.failed > 0 ? '✗' : '✓'} ${suite.name}: ${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped (${Math.round((Date.now() - startedAt) / 1000)} s)`);
    for (const skip of totals.skips) lines.push(`  SKIPPED ${skip}`);
  }
} finally {
  rmSync(reports, { recursive: true, force: true });
}
if (lines.length === 0) {
  lines.push(`No suite is named ${wanted.join(' or ')}.`);
  sum.failed = 1;
}
process.stdout.write(`\n=== summary ===\n${lines.join('\n')}\n\n${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped\n`);
process.exit(interrupted ? 130 : sum.failed > 0 ? 1 : 0);

/** Runs a suite in a process group of its own, to its end or to its time limit, and answers its exit code. */
function runSuite({ name, argv, timeoutMs }, report) {
  return new Promise(resolve => {
    const [program, ...args] = argv(report);
    const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], detached: true });
    current = child;
    const timer = setTimeout(() => {
      process.stdout.write(`\n${name} did not end within ${timeoutMs / 60_000} min and is stopped.\n`);
      killGroup(child.pid, 'SIGTERM');
      setTimeout(() => killGroup(child.pid, 'SIGKILL'), graceMs).unref();
    }, timeoutMs);
    const end = code => {
      clearTimeout(timer);
      // What a test left running in the group would disturb the next suite.
      killGroup(child.pid, 'SIGKILL');
      current = undefined;
      resolve(code);
    };
    child.on('error', error => {
      process.stdout.write(`${program} could not be started: ${error.message}\n`);
      end(1);
    });
    child.on('close', code => end(code ?? 1));
  });
}

function killGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone.
  }
}
