import assert from 'node:assert/strict';
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { randomBytes } from 'node:crypto';
import { Sandbox } from 'e2b';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';
import { killGroup, runToEnd, start, textOf, waitFor, type Finished } from '../support/process.ts';

// TCP ports and SSH of a sandbox, as a person uses them: with only a URL and a key, and with OpenSSH's own programs.
const atoll = join(repository, 'bin/atoll');

let platform: TestPlatform;
let home: string;
let env: NodeJS.ProcessEnv;
let sandbox: Sandbox;

before(async () => {
  platform = await startPlatform();
  home = mkdtempSync(join(tmpdir(), 'atoll-home-'));
  env = { PATH: process.env['PATH'], HOME: home, ATOLL_DATA_DIR: join(home, 'none') };
  Object.assign(process.env, platform.env);
  const signedIn = await run([atoll, 'login', platform.ready.url, '--key', platform.ready.apiKey]);
  assert.equal(signedIn.exitCode, 0, signedIn.stderr);
  sandbox = await Sandbox.create({ network: { allowPublicTraffic: false } });
});
after(async () => {
  await platform[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

const run = (argv: string[], input?: string): Promise<Finished> =>
  runToEnd(argv, { env, cwd: home, ...(input !== undefined && { input }) });

/** Sends `bytes`, ends, and answers everything that comes back. */
function exchange(port: number, bytes: Uint8Array): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    const socket: Socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, () => socket.end(bytes));
    socket.on('data', (part: Buffer) => parts.push(part)).on('error', reject);
    socket.on('end', () => resolve(Buffer.concat(parts)));
  });
}

test('a port of a sandbox is a port of this machine, for any protocol', async () => {
  // It speaks first, answers once the other side has ended, and listens only on the sandbox's loopback.
  const server = [
    'import socketserver',
    'class Handler(socketserver.StreamRequestHandler):',
    '    def handle(self):',
    '        self.wfile.write(b"ready\\n")',
    '        self.wfile.write(self.rfile.read()[::-1])',
    'socketserver.ThreadingTCPServer(("127.0.0.1", 5432), Handler).serve_forever()',
  ].join('\n');
  await sandbox.files.write('/tmp/server.py', server);
  await sandbox.commands.run('python3 /tmp/server.py', { background: true, timeoutMs: 0 });
  const child = start([atoll, 'forward', sandbox.sandboxId, '0:5432'], { env, cwd: home });
  const said = textOf(child, 'stderr');
  try {
    const port = await waitFor(
      'the port',
      () => Number(/127\.0\.0\.1:(\d+) leads to/.exec(said())?.[1] ?? 0) || false,
      30_000,
    );
    const sent = randomBytes(500_000);
    const expected = Buffer.concat([Buffer.from('ready\n'), Buffer.from(sent).reverse()]);
    for (const back of await Promise.all([exchange(port, sent), exchange(port, sent)]))
      assert.ok(back.equals(expected));
    child.kill('SIGINT');
    await waitFor('the end', () => child.exitCode !== null, 30_000);
    assert.equal(child.exitCode, 0, said());
  } finally {
    killGroup(child, 'SIGKILL');
  }
  const closed = await run([atoll, 'forward', sandbox.sandboxId, '70000']);
  assert.equal(closed.exitCode, 2);
  const datagrams = await run([atoll, 'forward', sandbox.sandboxId, '53/udp']);
  assert.equal(datagrams.exitCode, 2);
  assert.match(datagrams.stderr, /53\/udp: UDP does not pass/);
  const unknown = await run([atoll, 'forward', 'nosuchsandbox', '80']);
  assert.match(unknown.stderr, /^atoll forward: .*nosuchsandbox.*\n$/);
});

test('OpenSSH runs commands inside, and ends with their exit codes', async () => {
  const ended = await run([atoll, 'ssh', sandbox.sandboxId, 'id -un; cat; exit 7'], 'through ssh');
  assert.deepEqual([ended.exitCode, ended.stdout], [7, 'user\nthrough ssh'], ended.stderr);
  const root = await run([atoll, 'ssh', '--user', 'root', sandbox.sandboxId, 'id', '-un']);
  assert.equal(root.stdout, 'root\n', root.stderr);
  const nobody = await run([atoll, 'ssh', '--user', 'nosuchuser', sandbox.sandboxId, 'true']);
  assert.equal(nobody.exitCode, 255);
  assert.match(nobody.stderr, /no user nosuchuser/);
});

test('ssh, scp and sftp know sandboxes by the printed configuration', async () => {
  const config = await run([atoll, 'ssh-config']);
  mkdirSync(join(home, '.ssh'), { mode: 0o700 });
  const file = join(home, '.ssh/config');
  writeFileSync(file, config.stdout, { mode: 0o600 });
  const host = `${sandbox.sandboxId}.atoll`;
  const content = randomBytes(200_000);
  writeFileSync(join(home, 'in.bin'), content);
  const copied = await run(['scp', '-F', file, 'in.bin', `${host}:/tmp/in.bin`]);
  assert.equal(copied.exitCode, 0, copied.stderr);
  const fetched = await run(['sftp', '-F', file, '-b', '-', host], 'get /tmp/in.bin out.bin\n');
  assert.equal(fetched.exitCode, 0, fetched.stderr);
  assert.ok(readFileSync(join(home, 'out.bin')).equals(content));
  // A separate terminal, as editors and people want.
  const terminal = await run(['ssh', '-F', file, '-tt', host, 'tty; stty size'], '');
  assert.match(terminal.stdout, /\/dev\/pts\/\d+/, terminal.stderr);
  // A key that is not authorized reaches nothing, although the tunnel is open.
  await sandbox.commands.run('rm ~/.ssh/authorized_keys && mkdir ~/.ssh/authorized_keys');
  assert.notEqual((await run(['ssh', '-F', file, host, 'true'])).exitCode, 0);
});
