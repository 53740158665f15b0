import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { repository } from '../support/platform.ts';
import { finish, outputUntil, run, start, startedPid } from './support/process.ts';
import { stream, unary } from './support/rpc.ts';
import { as } from './support/users.ts';
import { startAgent, type TestAgent } from './support/test-agent.ts';

// A program that shows what it was given, waits for a line, and ends as told.
const show = `
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **argument) {
  char line[100], folder[1000];
  printf("uid %d home %s in %s\\n", getuid(), getenv("HOME"), getcwd(folder, sizeof folder));
  for (int i = 1; i < count; i++) printf("argument %s\\n", argument[i]);
  fflush(stdout);
  return fgets(line, sizeof line, stdin) ? atoi(line) : 0;
}
`;

let folder: string;
let static_: string;
let dynamic: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-roots-'));
  writeFileSync(join(folder, 'show.c'), show);
  static_ = join(folder, 'show-static');
  dynamic = join(folder, 'show-musl');
  execFileSync('musl-gcc', ['-static', '-o', static_, join(folder, 'show.c')]);
  execFileSync('musl-gcc', ['-o', dynamic, join(folder, 'show.c')]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function put(tree: string, path: string, content: string | { copy: string }, mode = 0o644): void {
  const file = join(tree, path);
  mkdirSync(dirname(file), { recursive: true });
  if (typeof content === 'string') writeFileSync(file, content);
  else copyFileSync(content.copy, file);
  chmodSync(file, mode);
}

/** The most frequent client operations, in a root where `/show` runs. */
async function expectToWork(agent: TestAgent, home: string, uid: number): Promise<void> {
  const events = await start(agent, { process: { cmd: '/show', args: ['a b', ''] }, stdin: true });
  const pid = await startedPid(events);
  expect(await outputUntil(events, 'argument \n')).toBe(
    `uid ${uid} home ${home} in ${existsSync(agent.path(home)) ? home : '/'}\nargument a b\nargument \n`,
  );
  await unary(agent, 'process.Process/SendInput', { process: { pid }, input: { stdin: btoa('7\n') } });
  expect((await finish(events)).end?.exitCode).toBe(7);

  const terminal = await start(agent, { process: { cmd: '/show' }, pty: { size: { cols: 80, rows: 24 } } });
  const terminalPid = await startedPid(terminal);
  await outputUntil(terminal, 'uid ');
  await unary(agent, 'process.Process/SendInput', { process: { pid: terminalPid }, input: { pty: btoa('8\r') } });
  expect((await finish(terminal)).end?.exitCode).toBe(8);

  expect(await run(agent, 'sh')).toMatchObject({ end: { exitCode: 127 }, stderr: 'sh: sh: not found\n' });

  const watch = await stream<{ start?: object; filesystem?: { name: string } }>(
    agent,
    'filesystem.Filesystem/WatchDir',
    { path: '/', recursive: false },
  );
  expect(await watch.next()).toEqual({ start: {} });
  const written = await fetch(`${agent.url}/files?path=/new/file`, {
    method: 'POST',
    body: 'text',
    headers: { 'content-type': 'application/octet-stream' },
  });
  expect(written.status).toBe(200);
  expect((await watch.next())?.filesystem?.name).toBe('new');
  await watch[Symbol.asyncDispose]();
  expect(await (await fetch(`${agent.url}/files?path=/new/file`)).text()).toBe('text');
  expect((await unary(agent, 'filesystem.Filesystem/ListDir', { path: '/new' })).body['entries']).toHaveLength(1);
  expect((await unary(agent, 'filesystem.Filesystem/Remove', { path: '/new' })).status).toBe(200);
  expect((await fetch(`${agent.url}/metrics`)).status).toBe(200);
}

test('a root that holds one static program', async () => {
  const tree = join(folder, 'one-program');
  put(tree, 'show', { copy: static_ }, 0o755);
  await using agent = await startAgent({ root: tree, init: { defaultUser: 'root' } });
  await expectToWork(agent, '/root', 0);
  expect((await run(agent, '/show', [], { headers: as('user') })).error?.code).toBe('unauthenticated');
});

test('a root with another C library', async () => {
  const tree = join(folder, 'musl');
  put(tree, 'show', { copy: dynamic }, 0o755);
  put(tree, 'lib/ld-musl-x86_64.so.1', { copy: '/lib/x86_64-linux-musl/libc.so' }, 0o755);
  put(tree, 'etc/passwd', 'root:x:0:0:root:/root:/bin/ash\nuser:x:1000:1000::/home/user:/bin/ash\n');
  put(tree, 'home/user/.profile', '');
  await using agent = await startAgent({ root: tree, init: { defaultUser: 'user' } });
  await expectToWork(agent, '/home/user', 1000);
});

describe('a root that means harm', () => {
  let tree: string;
  beforeAll(() => {
    tree = join(folder, 'hostile');
    put(tree, 'show', { copy: static_ }, 0o755);
    const marker =
      'int mark(void) __attribute__((constructor)); int creat(const char *, int); int mark(void) { return creat("/tmp/loaded", 0666); }';
    writeFileSync(join(folder, 'evil.c'), marker);
    mkdirSync(join(tree, 'tmp'), { recursive: true });
    execFileSync('gcc', ['-shared', '-fPIC', '-nostdlib', '-o', join(tree, 'evil.so'), join(folder, 'evil.c')]);
    put(tree, 'etc/ld.so.preload', '/evil.so\n');
    put(tree, 'etc/ld.so.cache', 'rubbish');
    put(tree, 'etc/ssl/openssl.cnf', 'openssl_conf = [[[');
    put(tree, '.env', 'BUN_OPTIONS=--preload=/evil.js\nLD_PRELOAD=/evil.so\n');
    put(tree, 'bunfig.toml', 'preload = ["/evil.js"]\n');
    put(tree, 'evil.js', 'require("node:fs").writeFileSync("/tmp/loaded", "")');
    put(tree, 'package.json', '{{{');
    put(tree, 'lib/x86_64-linux-gnu/libc.so.6', 'no library');
    put(
      tree,
      'etc/passwd',
      `broken\n:::\nroot:x:abc:0::/root:\n${'x'.repeat(100_000)}\nuser:x:1000:1000::/nowhere:/bin/sh\n`,
    );
    execFileSync('mkfifo', [join(tree, 'etc/group'), join(tree, 'etc/hosts')]);
  });

  test('does not touch the agent, even when it starts again', async () => {
    await using agent = await startAgent({
      root: tree,
      init: { defaultUser: 'root', hostname: 'sandbox', caBundle: 'certificate' },
    });
    await expectToWork(agent, '/root', 0);
    expect((await run(agent, '/show', [], { headers: as('user') })).stdout).toBe('uid 1000 home /nowhere in /\n');
    process.kill(agent.agentPid(), 'SIGKILL');
    await agent.healthy();
    await expectToWork(agent, '/root', 0);
    // Code loaded there would leave a mark; the tmpfs on /tmp is the root's only writable place for it.
    expect(readdirSync(agent.path('/tmp'))).toEqual([]);
  });
});

test('the loader of the agent knows no place of the root where anybody could put a library', () => {
  const help = execFileSync(join(repository, 'dist/agent/lib/ld.so'), ['--help'], { encoding: 'latin1' });
  const places = [...help.matchAll(/^ +(\/\S*) \(system search path\)$/gm)].map(([, place = '']) => resolve(place));
  expect(places).toEqual(['/.agent/lib', '/sys', '/sys', '/sys']);
});

test('what an init brings is written into the root', async () => {
  await using agent = await startAgent({
    root: 'empty',
    init: {
      envVars: { E2B_SANDBOX: 'true', E2B_SANDBOX_ID: 'iabc', E2B_TEMPLATE_ID: 't1' },
      hostname: 'named',
      caBundle: '-----BEGIN CERTIFICATE-----\nfirst\n-----END CERTIFICATE-----',
    },
  });
  const read = (path: string) => readFileSync(agent.path(path), 'utf8');
  expect([read('/run/e2b/.E2B_SANDBOX'), read('/run/e2b/.E2B_SANDBOX_ID'), read('/run/e2b/.E2B_TEMPLATE_ID')]).toEqual([
    'true',
    'iabc',
    't1',
  ]);
  expect(read('/etc/hostname')).toBe('named\n');
  expect(read('/etc/hosts')).toContain('127.0.1.1 named\n');
  writeFileSync(
    agent.path('/etc/ssl/certs/ca-certificates.crt'),
    `of the image\n${read('/etc/ssl/certs/ca-certificates.crt')}`,
  );
  await agent.init({ hostname: 'named', caBundle: '-----BEGIN CERTIFICATE-----\nsecond\n-----END CERTIFICATE-----' });
  const bundle = read('/etc/ssl/certs/ca-certificates.crt');
  expect(bundle).toStartWith('of the image\n');
  // What the template was built with stays, and each occurs once.
  for (const name of ['first', 'second']) expect(bundle.split(name)).toHaveLength(2);
  expect(read('/etc/hosts').match(/named/g)?.length).toBe(1);
});
