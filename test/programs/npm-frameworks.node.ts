import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';

const packages = ['@mastra/e2b@0.8.0', '@mastra/core@1.71.0', '@computesdk/e2b@1.7.52', 'computesdk@4.1.4'];
const installMs = 5 * 60_000;
/** One of them builds a template of its own first. */
const programMs = 4 * 60_000;
const folder = mkdtempSync(join(tmpdir(), 'atoll-frameworks-'));

let platform: TestPlatform;
before(
  async () => {
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    const { exitCode, stderr } = await runToEnd(
      ['npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts', ...packages],
      { cwd: folder, timeoutMs: installMs },
    );
    assert.equal(exitCode, 0, stderr);
    platform = await startPlatform();
  },
  { timeout: installMs * 2 },
);
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await platform?.[Symbol.asyncDispose]();
});

/** What a program that uses a framework prints, line by line. */
async function printed(program: string): Promise<unknown[]> {
  writeFileSync(join(folder, 'main.mjs'), `const say = value => console.log(JSON.stringify(value));\n${program}`);
  const { exitCode, stdout, stderr } = await runToEnd([process.execPath, 'main.mjs'], {
    cwd: folder,
    env: platform.env,
    timeoutMs: programMs,
  });
  assert.equal(exitCode, 0, stderr);
  return stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as unknown);
}

it('Mastra’s workspace: commands, processes, and the end', { timeout: programMs }, async () => {
  const lines = await printed(`import { E2BSandbox } from '@mastra/e2b';
const sandbox = new E2BSandbox({ timeout: 60_000, env: { GIVEN: 'yes' } });
await sandbox.start();
say((await sandbox.executeCommand('sh', ['-c', 'echo out $GIVEN'])).stdout);
say((await sandbox.executeCommand('exit 3')).exitCode);
const process = await sandbox.processes.spawn('sleep 1000');
say((await sandbox.processes.list()).some(({ pid }) => pid === process.pid));
say(await process.kill());
await sandbox.destroy();`);
  assert.deepEqual(lines, ['out yes\n', 3, true, true]);
});

it('ComputeSDK: commands, files, lists, and the end', { timeout: programMs }, async () => {
  const lines = await printed(`import { e2b } from '@computesdk/e2b';
const { sandbox: all } = e2b({ apiKey: process.env.E2B_API_KEY });
const sandbox = await all.create({ envs: { GIVEN: 'yes' } });
const { stdout, stderr, exitCode } = await sandbox.runCommand('echo out $GIVEN; echo err >&2; exit 3');
say([stdout, stderr, exitCode]);
await sandbox.filesystem.mkdir('/tmp/folder');
await sandbox.filesystem.writeFile('/tmp/folder/file.txt', 'hello');
say([await sandbox.filesystem.readFile('/tmp/folder/file.txt'), await sandbox.filesystem.exists('/tmp/none')]);
say((await sandbox.filesystem.readdir('/tmp/folder')).map(({ name }) => name));
say((await all.getById(sandbox.sandboxId))?.sandboxId === sandbox.sandboxId);
await sandbox.destroy();
say(await all.getById(sandbox.sandboxId));`);
  assert.deepEqual(lines, [['out yes\n', 'err\n', 3], ['hello', false], ['file.txt'], true, null]);
});
