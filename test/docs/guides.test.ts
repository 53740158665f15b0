import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';
import { pythonWithSdk } from '../support/python.ts';
import { testUnless } from '../support/skip.ts';
import { type Block, blocksOfPages, fencedIn, programsOf } from './code-blocks.ts';
import { askedBy, expressions, metricsOf } from './operations.ts';

// Every program of the documentation runs unchanged against one platform, and must print what its page says. A page is
// read from beginning to end, so its programs run in that order, in a folder of their own. The code interpreter's suite
// runs that guide's program.

/** Longest time of one program, and of all programs of a page. */
const [runTimeoutMs, testTimeoutMs] = [240_000, 300_000];
/** The answer of a machine without CRIU, according to its guide. */
const refusalOfMemory = "the memory of sandboxes can't be kept here";
const pages = Map.groupBy(blocksOfPages(), ({ page }) => page);
const python = await pythonWithSdk();
const scratch = mkdtempSync(join(tmpdir(), 'atoll-guides-'));
let platform: TestPlatform;

beforeAll(async () => {
  platform = await startPlatform();
}, 10 * 60_000);
afterAll(async () => {
  await platform[Symbol.asyncDispose]();
  rmSync(scratch, { recursive: true, force: true });
});

/** What runs a program, and where: JavaScript finds the SDK's packages in the checkout. */
function runnerOf({ language, code }: Block, folder: string): { argv: string[]; cwd: string } {
  if (language === 'js') return { argv: ['node', '--input-type=module', '--eval', code], cwd: repository };
  if (language === 'bash') return { argv: ['bash', '-euo', 'pipefail', '-c', code], cwd: folder };
  return { argv: ['program' in python ? python.program : 'python3', '-c', code], cwd: folder };
}

/** Runs programs one after another, and compares what they print. */
async function runAll(blocks: Block[]): Promise<void> {
  const folder = mkdtempSync(join(scratch, 'guide-'));
  const env = { ...platform.env, PATH: `${join(repository, 'bin')}:${process.env['PATH']}` };
  for (const block of blocks) {
    const { argv, cwd } = runnerOf(block, folder);
    const { exitCode, stdout, stderr } = await runToEnd(argv, { cwd, env, timeoutMs: runTimeoutMs });
    const place = `${block.page}:${block.line}\n${stdout}\n${stderr}`;
    if (block.needsMemory && exitCode !== 0 && stderr.includes(refusalOfMemory)) continue;
    expect(exitCode, place).toBe(0);
    if (block.output !== null) expect(stdout.trim(), place).toBe(block.output.trim());
  }
}

for (const [page, blocks] of pages) {
  const [ofPython, others] = [true, false].map(is => blocks.filter(({ language }) => (language === 'python') === is));
  if (others?.length) test(`the programs of ${page} do what it says`, () => runAll(others), testTimeoutMs);
  if (ofPython?.length)
    testUnless('missing' in python ? python.missing : undefined)(
      `the programs in Python of ${page} do what it says`,
      () => runAll(ofPython),
      testTimeoutMs,
    );
}

test('dashboard and alerts ask for metrics and labels that the platform gives', async () => {
  const token = readFileSync(join(platform.ready.dataDir, 'metrics-token'), 'utf8').trim();
  // One of each, so that their series exist.
  const { sandboxID } = (await (await platform.api('POST', '/sandboxes', { templateID: 'base' })).json()) as {
    sandboxID: string;
  };
  await platform.api('DELETE', `/sandboxes/${sandboxID}`);
  expect((await platform.api('POST', '/sandboxes', { templateID: 'none-such' })).status).toBe(404);
  const answer = await fetch(`${platform.ready.url}/metrics`, { headers: { Authorization: `Bearer ${token}` } });
  const metrics = metricsOf(await answer.text());
  // Prometheus adds these itself.
  const ofPrometheus = ['job', 'instance', 'le'];
  // A machine of a cluster names itself; this one is alone.
  const ofClusters = new Map([['atoll_process_restarts_total', 'node']]);
  metrics.set('up', new Set());
  const unknown = expressions().flatMap(({ place, expr }) =>
    askedBy(expr).flatMap(({ metric, labels }) => {
      const its = metrics.get(metric);
      if (!its) return [`${place}: ${metric} is not given`];
      return labels
        .filter(name => !its.has(name) && !ofPrometheus.includes(name) && ofClusters.get(metric) !== name)
        .map(name => `${place}: ${metric} has no ${name}`);
    }),
  );
  expect(unknown).toEqual([]);
});

test('programs and their output are found, and what is there to be read is not run', () => {
  const text =
    '```js\na()\n```\n\n```output\n1\n```\n\n```console\nnot run\n```\n\n```yaml\na: b\n```\n```js read\nc\n```\n' +
    '```bash memory\nb\n```\n';
  expect(programsOf(fencedIn('g.md', text))).toEqual([
    { page: 'g.md', line: 1, language: 'js', code: 'a()\n', output: '1\n', needsMemory: false },
    { page: 'g.md', line: 19, language: 'bash', code: 'b\n', output: null, needsMemory: true },
  ]);
  expect(pages.size).toBeGreaterThan(12);
});
