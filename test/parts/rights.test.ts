import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readFileSync, readdirSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';
import { openFilesOf, partNames, partOf, type PartName, remoteEndsOf, statusOf } from './support/parts-of.ts';

// Each process has only the rights that its work needs, according to the kernel.

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform({ ATOLL_TLS_PORT: '0' });
}, 600_000);
afterAll(() => platform?.[Symbol.asyncDispose]());

const pid = (name: PartName) => partOf(platform.ready.pid, name);
const uid = (name: PartName) => Number(statusOf(pid(name), 'Uid').split('\t')[0]);
const runDir = () =>
  join('/run/atoll', String(readdirSync('/run/atoll').find(number => ownerOf(number) === platform.ready.dataDir)));
const ownerOf = (number: string) => readOr(join('/run/atoll', number, 'owner')) ?? '';
/** Undefined for what does not exist (any more), such as a thread that has just ended. */
const readOr = (path: string) => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
};
const every = (name: PartName, field: string) => statusOf(pid(name), field).split('\t');

/** What a user can read or write in a folder, by test(1); names that the user could not list are tried as well. */
async function allowedTo(user: number, what: '-r' | '-w', folder: string): Promise<string[]> {
  const found = await runToEnd(['find', folder, '-mindepth', '1', '-maxdepth', '4', '-printf', '%P\\n']);
  const paths = found.stdout.split('\n').filter(Boolean);
  expect(paths.length).toBeGreaterThan(5);
  const tries = 'cd / && while read -r path; do if test "$1" "$2/$path"; then echo "$path"; fi; done';
  const { stdout } = await runToEnd(
    ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', 'sh', '-c', tries, 'sh', what, folder],
    { input: `${paths.join('\n')}\n` },
  );
  return stdout.split('\n').filter(Boolean).sort();
}

test('the node is root; the api and the edge are users of their own, without groups, in every thread', () => {
  expect(every('node', 'Uid')).toEqual(['0', '0', '0', '0']);
  const users = [uid('api'), uid('edge')];
  expect(new Set([0, ...users]).size).toBe(3);
  for (const name of ['api', 'edge'] as const) {
    const id = String(uid(name));
    const threads = readdirSync(`/proc/${pid(name)}/task`).flatMap(
      thread => readOr(`/proc/${pid(name)}/task/${thread}/status`) ?? [],
    );
    expect(threads.length).toBeGreaterThan(0);
    for (const text of threads) {
      const status = (field: string) => new RegExp(`^${field}:[ \\t]*(.*)$`, 'm').exec(text)?.[1]?.trim();
      expect(status('Uid')).toBe([id, id, id, id].join('\t'));
      expect(status('Gid')).toBe([id, id, id, id].join('\t'));
      expect(status('Groups') ?? '').toBe('');
      for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) expect(status(set)).toBe('0000000000000000');
      expect(status('NoNewPrivs')).toBe('1');
    }
  }
});

test('nobody but root reads or writes anything in the data directory; its own the api sees elsewhere, and nobody else does', async () => {
  const { dataDir } = platform.ready;
  for (const user of [uid('api'), uid('edge'), 65_534]) {
    for (const what of ['-r', '-w'] as const) expect(await allowedTo(user, what, dataDir)).toEqual([]);
  }
  const shown = join(runDir(), 'api-data');
  expect(readdirSync(join('/proc', String(pid('api')), 'root', shown, 'api'))).toContain('atoll.sqlite');
  expect(readdirSync(join(shown, 'api'))).toEqual([]);
  for (const name of [
    'seed',
    'admin-token',
    'metrics-token',
    'api-key',
    'node-id',
    'installation.json',
    'tls/ca-key.pem',
    'tls/server-key.pem',
    'node/layers',
  ]) {
    for (const user of [uid('api'), uid('edge'), 65_534]) {
      const read = await runToEnd([
        'setpriv',
        `--reuid=${user}`,
        `--regid=${user}`,
        '--clear-groups',
        'test',
        '-r',
        join(dataDir, name),
      ]);
      expect([name, user, read.exitCode]).toEqual([name, user, 1]);
    }
  }
});

test('each socket is for the one process that calls it', async () => {
  const facts = (name: string) => {
    const { uid: owner, gid: group, mode } = statSync(join(runDir(), name));
    return [owner, group, mode & 0o7777];
  };
  const [api, edge] = [uid('api'), uid('edge')];
  expect(facts('node-for-api.sock')).toEqual([api, api, 0o600]);
  expect(facts('node-for-edge.sock')).toEqual([edge, edge, 0o600]);
  expect(facts('api')).toEqual([api, edge, 0o2710]);
  for (const name of ['api/http.sock', 'api/directory.sock']) expect(facts(name)).toEqual([api, edge, 0o660]);
  expect((await allowedTo(65_534, '-w', runDir())).filter(path => path.endsWith('.sock'))).toEqual([]);
});

test('the api and the edge hold no file of the data directory that is not theirs', () => {
  const held = (name: PartName) =>
    openFilesOf(pid(name)).filter(path => path.startsWith(platform.ready.dataDir) || path.startsWith(runDir()));
  expect(held('edge')).toEqual([]);
  expect(held('api').filter(path => path.includes('atoll.sqlite')).length).toBeGreaterThan(0);
  expect(held('api').filter(path => !path.startsWith(join(runDir(), 'api-data/api/')))).toEqual([]);
});

test('no process has a setting or a secret in its arguments, and the api and the edge none in their environment', () => {
  const secrets = ['seed', 'admin-token', 'metrics-token', 'api-key'].map(name =>
    readFileSync(join(platform.ready.dataDir, name), 'utf8').trim(),
  );
  for (const name of ['node', 'api', 'edge'] as const) {
    const command = readFileSync(`/proc/${pid(name)}/cmdline`, 'utf8');
    for (const secret of secrets) expect(command).not.toContain(secret);
    if (name === 'node') continue;
    const environment = readFileSync(`/proc/${pid(name)}/environ`, 'utf8');
    expect(environment).not.toContain('ATOLL_');
    for (const secret of secrets) expect(environment).not.toContain(secret);
  }
});

test('neither can look into the other, nor into the node', async () => {
  for (const [from, to] of [
    ['api', 'edge'],
    ['edge', 'api'],
    ['edge', 'node'],
    ['api', 'node'],
  ] as const) {
    const user = uid(from);
    const read = await runToEnd([
      'setpriv',
      `--reuid=${user}`,
      `--regid=${user}`,
      '--clear-groups',
      'ls',
      `/proc/${pid(to)}/fd`,
    ]);
    expect([from, to, read.exitCode]).not.toEqual([from, to, 0]);
  }
  expect(() => readlinkSync(`/proc/${pid('edge')}/exe`)).not.toThrow();
});

/** The node's answer to a call by the api. Perl is part of every Debian, where any user may run it. */
async function askedAsApi(call: string, args: unknown[]): Promise<{ error?: { code: string; message: string } }> {
  const asks =
    'my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die $!; binmode $s; read($s, my $greeting, 4); ' +
    'print $s pack("VC", length $ARGV[1], 0) . $ARGV[1]; $s->flush; read($s, my $head, 5); ' +
    'read($s, my $answer, unpack("V", $head)); print $answer';
  const user = uid('api');
  const rights = [`--reuid=${user}`, `--regid=${user}`, '--clear-groups'];
  const message = JSON.stringify({ id: 1, call, args });
  const { stdout } = await runToEnd([
    ...['setpriv', ...rights, 'perl', '-MIO::Socket::UNIX', '-MIO::Handle', '-e', asks],
    ...[join(runDir(), 'node-for-api.sock'), message],
  ]);
  return JSON.parse(stdout) as { error?: { code: string; message: string } };
}

test('the api of a machine alone can hand it no memory, disk or layer, and read none', async () => {
  expect(await askedAsApi('node.listSnapshots', [])).not.toHaveProperty('error');
  const digest = `sha256:${'0'.repeat(64)}`;
  const [key, execution] = ['k'.repeat(43), { sandboxId: 's', executionId: 'e' }];
  for (const [call, args] of [
    ['layers.openWrite', [digest, 1]],
    ['layers.openRead', [digest]],
    ['pauses.openWrite', [execution, key, 1]],
    ['drafts.openWrite', [{ ...execution, draftId: 'd' }, key, 1]],
    ['snapshots.openWrite', ['00000000-0000-0000-0000-000000000000', key, 1]],
    ['volumeCopies.openWrite', ['00000000-0000-0000-0000-000000000000', key, 1]],
    ['uploads.openWrite', [{ teamId: 't', hash: '0'.repeat(64) }, 1]],
  ] as const)
    expect([call, (await askedAsApi(call, [...args])).error?.code]).toEqual([call, 'unimplemented']);
});

test('the edge answers who comes to it, and can reach nobody itself, neither on this machine nor elsewhere', async () => {
  const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  using _ = { [Symbol.dispose]: () => server.stop(true) };
  const reaches = async (user: number, path: string) => {
    const rights = [`--reuid=${user}`, `--regid=${user}`, '--clear-groups'];
    const asks = 'exec 3<>"$1" && echo asked >&3';
    return (await runToEnd(['setpriv', ...rights, 'bash', '-c', asks, 'bash', path])).exitCode === 0;
  };
  for (const path of [`/dev/tcp/127.0.0.1/${server.port}`, `/dev/udp/127.0.0.1/${server.port}`])
    expect([path, await reaches(65_534, path), await reaches(uid('edge'), path)]).toEqual([path, true, false]);
  expect((await fetch(`${platform.ready.url}/health`)).status).toBe(200);
});

test('nothing phones home: no process of the platform has a socket to another machine, whatever it is asked for', async () => {
  const ends = () => [platform.ready.pid, ...partNames.map(pid)].flatMap(remoteEndsOf);
  const seen = new Set(ends());
  const headers = { 'X-API-Key': platform.ready.apiKey, 'Content-Type': 'application/json' };
  const ask = (method: string, path: string, body?: unknown) =>
    fetch(`${platform.ready.url}${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const creating = ask('POST', '/sandboxes', { templateID: 'base' });
  for (let isOver = false; !isOver;) {
    isOver = await Promise.race([creating.then(() => true), Bun.sleep(2).then(() => false)]);
    for (const end of ends()) seen.add(end);
  }
  const { sandboxID } = (await (await creating).json()) as { sandboxID: string };
  expect((await ask('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
  for (const end of ends()) seen.add(end);
  expect([...seen]).toEqual([]);
});
