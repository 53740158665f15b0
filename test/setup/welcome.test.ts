import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { ChildProcess } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { repository } from '../support/platform.ts';
import { killGroup, runToEnd, start, textOf, waitFor } from '../support/process.ts';
import { pythonWithSdk } from '../support/python.ts';
import { testUnless } from '../support/skip.ts';

// The lines that the start prints are pasted unchanged into a shell.

const python = await pythonWithSdk();
let dataDir: string;
let child: ChildProcess;
let printed: string;
const env = () => ({ ...process.env, ATOLL_DATA_DIR: dataDir, ATOLL_PORT: '0', ATOLL_TEMPLATES: 'none' });

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'atoll-welcome-'));
  child = start([join(repository, 'bin/atoll'), 'up'], { env: env() });
  const output = textOf(child, 'stdout');
  printed = await waitFor('the welcome', () => output().includes('Ctrl-C') && output(), 600_000);
}, 600_000);

afterAll(async () => {
  if (child) killGroup(child, 'SIGTERM');
  const down = await runToEnd([join(repository, 'bin/atoll'), 'down', '--all'], { env: env() });
  expect(down).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('Every sandbox is removed.') });
  await rm(dataDir, { recursive: true, force: true });
});

async function paste(line: RegExp, more: NodeJS.ProcessEnv = {}) {
  const lines = printed.split('\n').map(text => text.trim());
  const exports = lines.filter(text => text.startsWith('export '));
  const command = lines.filter(text => line.test(text));
  expect(exports.length).toBeGreaterThan(0);
  expect(command).toHaveLength(1);
  return runToEnd(['bash', '-c', [...exports, ...command].join('\n')], { cwd: repository, env: { ...env(), ...more } });
}

/** Contains the sandbox's ID, which is its host name. */
const greeting = { exitCode: 0, stdout: expect.stringMatching(/^Hello from i[a-z0-9]{20}\n\n$/) };

test('the line for JavaScript', async () => {
  expect(await paste(/^node /)).toMatchObject(greeting);
});

testUnless('missing' in python ? python.missing : undefined)('the line for Python', async () => {
  const folder = dirname('program' in python ? python.program : '');
  const [version = ''] = readdirSync(join(folder, '../lib'));
  // On a busy machine the interpreter sometimes does not find its own environment. Only the line is tested.
  const PYTHONPATH = join(folder, '../lib', version, 'site-packages');
  const answer = await paste(/^python3 /, { PATH: `${folder}:${process.env['PATH']}`, PYTHONPATH });
  expect(answer).toMatchObject(greeting);
});

test('the line for curl', async () => {
  const { exitCode, stdout } = await paste(/^curl /);
  expect(exitCode).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ sandboxID: expect.any(String) });
});
