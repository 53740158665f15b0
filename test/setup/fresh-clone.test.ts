import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { holdingsOf } from '../support/leaks.ts';
import { type Ready, repository } from '../support/platform.ts';
import { killGroup, runToEnd, start, textOf, waitFor } from '../support/process.ts';

// The README's promises about its two commands, in a clone where nothing was installed or built before.

let folder: string;
let clone: string;
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'atoll-clone-'));
  clone = join(folder, 'atoll');
  const cloned = await runToEnd(['git', 'clone', '--quiet', repository, clone]);
  if (cloned.exitCode !== 0) throw new Error(cloned.stderr);
  env = { ...process.env, ATOLL_DATA_DIR: join(folder, 'data'), ATOLL_PORT: '0', ATOLL_TEMPLATES: 'none' };
}, 120_000);

afterAll(async () => {
  await runToEnd(['npm', 'run', 'down', '--', '--all'], { cwd: clone, env });
  await rm(folder, { recursive: true, force: true });
}, 120_000);

type Up = { child: ChildProcess; ready: Ready; said: () => string };

async function up(): Promise<Up> {
  const child = start(['npm', 'run', 'up', '--', '--json'], { cwd: clone, env });
  const [out, said] = [textOf(child, 'stdout'), textOf(child, 'stderr')];
  const ready = await waitFor(
    'npm run up',
    () => {
      if (child.exitCode !== null) throw new Error(`npm run up ended with ${child.exitCode}:\n${said()}`);
      const line = out()
        .split('\n')
        .find(text => text.startsWith('{'));
      return line !== undefined && (JSON.parse(line) as Ready);
    },
    900_000,
  ).catch(error => {
    killGroup(child, 'SIGKILL');
    throw error;
  });
  return { child, ready, said };
}

async function interrupt({ child }: Up): Promise<void> {
  const closed = once(child, 'close');
  // A terminal sends Ctrl-C to every process of the foreground group: npm, its shell, the platform.
  killGroup(child, 'SIGINT');
  await closed;
}

const request = (ready: Ready, method: string, path: string, body?: string) =>
  fetch(ready.url + path, {
    method,
    headers: { 'X-API-Key': ready.apiKey, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body }),
  });

test('npm run up, Ctrl-C, npm run up, npm run down', async () => {
  const first = await up();
  expect(first.said()).toContain('✓ Installing npm packages');
  expect(first.said()).toContain('✓ Building the native helper');
  expect(first.said()).toContain('✓ Building the agent');
  expect(first.ready.apiKey).toMatch(/^e2b_[0-9a-f]{40}$/);
  const created = await request(first.ready, 'POST', '/sandboxes', '{"templateID":"base","timeout":600}');
  expect(created.status).toBe(201);
  const { sandboxID } = (await created.json()) as { sandboxID: string };
  await interrupt(first);
  expect(first.said()).not.toContain('"level":"error"');

  const second = await up();
  // Nothing is done twice: no step printed a line.
  expect(second.said()).not.toMatch(/[…✓✗]/);
  expect(second.ready.apiKey).toBe(first.ready.apiKey);
  expect((await request(second.ready, 'GET', `/sandboxes/${sandboxID}`)).status).toBe(200);

  const down = await runToEnd(['npm', 'run', 'down', '--', '--all'], { cwd: clone, env });
  expect(down).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('Every sandbox is removed.') });
  await waitFor('npm to end', () => second.child.exitCode !== null);
  const { files, ...rest } = holdingsOf(env['ATOLL_DATA_DIR'] ?? '');
  expect([...Object.values(rest).flat(), ...files]).toEqual([]);
}, 1_200_000);

test('what can’t work ends in one message that says what to do', async () => {
  const fail = async (argv: string[], more: NodeJS.ProcessEnv = {}) => {
    const { exitCode, stderr } = await runToEnd(argv, { cwd: clone, env: { ...env, ...more } });
    expect(exitCode).not.toBe(0);
    expect(stderr).not.toMatch(/^\s+at /m);
    return stderr;
  };
  const node = process.platform === 'linux' ? (Bun.which('node') ?? 'node') : 'node';
  await runToEnd(['chmod', '755', folder]);
  expect(await fail(['setpriv', '--reuid=65534', '--clear-groups', node, 'scripts/prepare.mjs'])).toContain(
    'needs root',
  );
  expect(await fail(['bin/atoll', 'up'], { ATOLL_PORT: '80 80' })).toContain(
    "ATOLL_PORT is '80 80' and must be a port",
  );
  expect(await fail(['bin/atoll', 'up'], { ATOLL_PROT: '8080' })).toContain('ATOLL_PROT is not a setting');
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() });
  try {
    expect(await fail(['bin/atoll', 'up'], { ATOLL_PORT: String(server.port) })).toContain(
      'set ATOLL_PORT to another one',
    );
  } finally {
    await server.stop(true);
  }
  expect(
    await fail(['bin/atoll', 'up'], {
      ATOLL_BASE_IMAGE: join(folder, 'none.tar'),
      ATOLL_DATA_DIR: join(folder, 'other'),
    }),
  ).toContain('none.tar is not a file');
  expect(await fail(['bin/atoll', 'up'], { ATOLL_DATA_DIR: '/proc/self' })).toContain('MiB are free for /proc/self');
  expect(await fail(['bin/atoll', 'down'], { ATOLL_DATA_DIR: join(folder, 'nowhere') })).toContain(
    'There is no installation',
  );
  // What a start had claimed on this machine before it failed is returned.
  const down = await runToEnd(['bin/atoll', 'down', '--all', '--yes'], {
    cwd: clone,
    env: { ...env, ATOLL_DATA_DIR: join(folder, 'other') },
  });
  expect(down).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('Every sandbox is removed.') });
  expect(Object.values(holdingsOf(join(folder, 'other'))).flat()).toEqual([]);
}, 120_000);
