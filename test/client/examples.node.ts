import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Sandbox } from 'e2b';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';

// The published package in a project of its own: its examples against a real platform.

const source = join(repository, 'clients/typescript');
const tsx = pathToFileURL(join(repository, 'node_modules/tsx/dist/loader.mjs')).href;
const hasPython = spawnSync('python3', ['--version']).status === 0;
let platform: TestPlatform;
let project: string;

before(async () => {
  platform = await startPlatform();
  project = await mkdtemp(join(tmpdir(), 'atoll-client-'));
  const installed = join(project, 'node_modules/@atoll/client');
  await mkdir(installed, { recursive: true });
  await cp(join(source, 'package.json'), join(installed, 'package.json'));
  await cp(join(source, 'examples'), join(project, 'examples'), { recursive: true });
  await writeFile(join(project, 'package.json'), '{ "type": "module" }\n');
  const tsc = join(repository, 'node_modules/.bin/tsc');
  await succeeds([tsc, '-p', source, '--outDir', join(installed, 'dist')]);
  await succeeds([tsc, '-p', join(source, 'examples')]);
});
after(async () => {
  await rm(project, { recursive: true, force: true });
  await platform[Symbol.asyncDispose]();
});

async function succeeds(argv: string[]): Promise<string> {
  const PYTHONPATH = join(repository, 'clients/python');
  const env = { ...platform.env, PYTHONPATH, PYTHONDONTWRITEBYTECODE: '1' };
  const { exitCode, stdout, stderr } = await runToEnd(argv, { env });
  assert.equal(exitCode, 0, `${argv.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}
const example = (name: string, ...args: string[]) =>
  succeeds([process.execPath, '--import', tsx, join(project, 'examples', `${name}.ts`), ...args]);

test('sandboxes are found by metadata and paused, and what was kept is told', async () => {
  const { url, apiKey, domain } = platform.ready;
  const connection = { apiKey, apiUrl: url, sandboxUrl: url, domain };
  const own = await Sandbox.create({ ...connection, metadata: { project: 'mine' } });
  const other = await Sandbox.create({ ...connection, metadata: { project: 'other' } });
  assert.match(
    await example('find-and-pause', 'mine'),
    new RegExp(`^${own.sandboxId} is paused: files( and memory| alone)\n$`),
  );
  assert.equal((await other.getInfo()).state, 'running');
});

test('the stream of events says what happened to a sandbox and why it ended', async () => {
  const lines = (await example('why-it-ended')).trim().split('\n');
  assert.match(lines[0] ?? '', /^sandbox\.lifecycle\.created /);
  assert.match(lines.at(-1) ?? '', /^sandbox\.lifecycle\.killed .*request/);
});

test('the same in Python', { skip: hasPython ? false : 'python3 is not installed' }, async () => {
  const program = join(repository, 'clients/python/examples/why_it_ended.py');
  const lines = (await succeeds(['python3', program])).trim().split('\n');
  assert.match(lines[0] ?? '', /^sandbox\.lifecycle\.created /);
  assert.match(lines.at(-1) ?? '', /^sandbox\.lifecycle\.killed .*request/);
});

test('a policy is asked about before a sandbox has it, and a mistake is told', async () => {
  const [passes, denied, failure] = (await example('would-it-pass')).split('\n');
  assert.match(passes ?? '', /^api\.example\.com: (passes|depends) \(/);
  assert.match(denied ?? '', /^example\.org: denied \(/);
  assert.match(failure ?? '', /^400: getNetworkVerdict: /);
});
