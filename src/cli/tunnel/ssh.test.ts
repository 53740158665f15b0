import { afterAll, afterEach, expect, test } from 'bun:test';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Terminal } from '../terminal/command.ts';
import { sshCommands } from './ssh.ts';

const dir = mkdtempSync(join(tmpdir(), 'atoll-ssh-'));
const usualPath = process.env['PATH'] ?? '';
afterEach(() => void (process.env['PATH'] = usualPath));
afterAll(() => rmSync(dir, { recursive: true }));

const settings = { program: ['/opt/a toll/atoll', '--url', 'http://a'], keyFile: join(dir, 'keys/id') };

/** Runs one of the commands; no sandbox is reachable. */
async function run(name: string, args: string[], given = settings): Promise<{ code: number | undefined; out: string }> {
  let out = '';
  const terminal: Terminal = { out: text => void (out += String(text)), err: () => {}, isInteractive: false };
  const away = () => {
    throw new Error('nobody is there');
  };
  const command = sshCommands(away, away, given).find(one => one.name === name);
  return { code: await command?.run(args, terminal), out };
}

/** Puts a program ahead of all others, or in place of them. */
function program(name: string, script: string, { alone = false } = {}): void {
  const folder = mkdtempSync(join(dir, 'bin-'));
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  process.env['PATH'] = alone ? folder : `${folder}${delimiter}${usualPath}`;
}

test('the client is started with the way to the sandbox, and its exit code is the command’s', async () => {
  const said = join(dir, 'said');
  program('ssh', `printf '%s\\n' "$@" > ${said}; exit 7`);
  expect((await run('ssh', ['i1', 'ls', '-l'])).code).toBe(7);
  expect(readFileSync(said, 'utf8').trim().split('\n')).toEqual([
    '-o',
    "ProxyCommand='/opt/a toll/atoll' --url http://a ssh-proxy i1 %r",
    ...['-o', `IdentityFile=${settings.keyFile}`, '-o', 'IdentitiesOnly=yes'],
    ...['-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null', '-o', 'LogLevel=ERROR'],
    ...['user@i1.atoll', 'ls', '-l'],
  ]);
  expect((await run('ssh', ['--user', 'root', 'i1'])).code).toBe(7);
  expect(readFileSync(said, 'utf8')).toEndWith('root@i1.atoll\n');
  await expect(run('ssh', [])).rejects.toMatchObject({ code: 'invalid' });
});

test('a client that a signal ends has failed', async () => {
  program('ssh', 'kill -TERM $$');
  expect((await run('ssh', ['i1'])).code).toBe(255);
});

test('where there is no client, its package is named', async () => {
  program('other', '', { alone: true });
  await expect(run('ssh', ['i1'])).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('install openssh-client'),
  });
});

test('the lines for other programs have the same way, for any sandbox', async () => {
  expect((await run('ssh-config', [])).out).toBe(`Host *.atoll
  User user
  ProxyCommand '/opt/a toll/atoll' --url http://a ssh-proxy %n %r
  IdentityFile ${settings.keyFile}
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
`);
  await expect(run('ssh-config', ['more'])).rejects.toMatchObject({ code: 'invalid' });
});

test('a key may be in a folder whose name has spaces', async () => {
  const { out } = await run('ssh-config', [], { ...settings, keyFile: '/home/a da/id' });
  expect(out).toContain('  IdentityFile "/home/a da/id"\n');
});

test('a key is made when it is first wanted, for its user alone, and kept', async () => {
  program('ssh-keygen', `for last; do :; done; echo private > "$last"; echo "ssh-ed25519 made" > "$last.pub"`);
  const keyFile = join(dir, 'fresh/keys/id');
  await expect(run('ssh-proxy', ['i1'], { ...settings, keyFile })).rejects.toThrow('nobody is there');
  expect(statSync(join(dir, 'fresh/keys')).mode & 0o777).toBe(0o700);
  expect(readFileSync(keyFile, 'utf8')).toBe('private\n');
  program('ssh-keygen', 'exit 1');
  await expect(run('ssh-proxy', ['i1'], { ...settings, keyFile })).rejects.toThrow('nobody is there');
});

test('a key that can’t be made says what is missing', async () => {
  const keyFile = join(dir, 'none/id');
  program('ssh-keygen', 'exit 1');
  const refusal = { code: 'unavailable', message: expect.stringContaining('ssh-keygen') };
  await expect(run('ssh-proxy', ['i1'], { ...settings, keyFile })).rejects.toMatchObject(refusal);
  program('other', '', { alone: true });
  await expect(run('ssh-proxy', ['i1'], { ...settings, keyFile })).rejects.toMatchObject(refusal);
  expect(existsSync(keyFile)).toBe(false);
  // Another run of the command may have made it meanwhile.
  const raced = join(dir, 'raced/id');
  mkdirSync(join(dir, 'raced'));
  program('ssh-keygen', `echo private > ${raced}; echo public > ${raced}.pub; exit 1`);
  await expect(run('ssh-proxy', ['i1'], { ...settings, keyFile: raced })).rejects.toThrow('nobody is there');
});
