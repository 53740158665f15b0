import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere } from '../../src/base/if-there.ts';
import { waitFor } from '../support/process.ts';
import { startMachine, type Machine, type TestSandbox } from './support/machine.ts';

const cycles = 20;

let machine: Machine;
let sandbox: TestSandbox;

beforeAll(async () => {
  machine = await startMachine();
  sandbox = await machine.start(0);
}, 120_000);

afterAll(async () => {
  await machine.kill(sandbox);
  await machine[Symbol.asyncDispose]();
}, 60_000);

const counter = `#!/bin/bash
i=0
while :; do i=$((i + 1)); echo $i >> /root/counts; sleep 0.01; done
`;

const server = `#!/bin/bash
cd /usr/share
exec python3 -m http.server 8000
`;

/** 64 MiB that would reveal any lost or exchanged page. */
const state = `#!/usr/bin/env node
const words = new Uint32Array(16 << 20);
for (let i = 0; i < words.length; i++) words[i] = Math.imul(i, 2654435761);
let asked = 0;
require('http').createServer((_, answer) => {
  asked++;
  let wrong = 0;
  for (let i = 0; i < words.length; i++) if (words[i] !== Math.imul(i, 2654435761) >>> 0) wrong++;
  answer.end(JSON.stringify({ asked, wrong }));
}).listen(8001, '127.0.0.1');
`;

/**
 * One call of the agent, as a client would make it. `awaited`: what a stream must say (a grep pattern), upon which this
 * client leaves; a stream that ends earlier is read whole.
 */
async function callAgent(method: string, message: unknown, awaited?: string): Promise<string> {
  const body = Buffer.from(JSON.stringify(message));
  const isStream = awaited !== undefined;
  const framed = isStream ? Buffer.concat([Buffer.of(0, 0, 0, 0, body.length), body]) : body;
  expect(body.length).toBeLessThan(256); // the length above is one byte
  const type = isStream ? 'application/connect+json' : 'application/json';
  const call =
    `curl -s -N --max-time 30 -H 'content-type: ${type}' -H 'connect-protocol-version: 1' -u root: ` +
    `--data-binary @/root/call http://127.0.0.1:49983/process.Process/${method} > /root/answer`;
  const until = `until grep -aq '${awaited}' /root/answer || ! kill -0 $!; do sleep 0.02; done; kill $!`;
  const made = isStream ? `{ ${call} & ${until}; } 2> /dev/null; true` : call;
  const prepared = `: > /root/answer; base64 -d <<< ${framed.toString('base64')} > /root/call`;
  return sandbox.run(`${prepared}; ${made} && tr -d '\\0' < /root/answer`);
}

/** How a stream about a process begins. */
const itsPid = '"pid":[0-9]*[,}]';

/** Waits until a server inside answers. It has been asked once then: no call is given up. */
const answersAt = (port: number) =>
  waitFor(`port ${port}`, async () => (await sandbox.run(`curl -s http://127.0.0.1:${port}/ || true`)) !== '');

test(`a counter, a server, 64 MiB of state and an open terminal live through ${cycles} pauses`, async () => {
  await sandbox.launch('counter', counter);
  await sandbox.launch('server', server);
  await sandbox.launch('state', state);
  const started = await callAgent(
    'Start',
    { process: { cmd: '/bin/bash', args: ['--norc'] }, pty: { size: { rows: 33, cols: 101 } } },
    itsPid,
  );
  const pid = Number(/"pid":(\d+)/.exec(started)?.[1]);
  expect(pid).toBeGreaterThan(1);
  const type = (line: string) =>
    callAgent('SendInput', { process: { pid }, input: { pty: Buffer.from(`${line}\n`).toString('base64') } });
  await type('KEPT=in-the-shell');
  await answersAt(8000);
  await answersAt(8001);

  for (let cycle = 1; cycle <= cycles; cycle++) {
    sandbox = await machine.cycle(sandbox, `cycle-${cycle}`);
    expect(await sandbox.run('curl -s -o /dev/null -w %{http_code} http://127.0.0.1:8000/')).toBe('200');
  }

  expect(JSON.parse(await sandbox.run('curl -s http://127.0.0.1:8001/'))).toEqual({ asked: 2, wrong: 0 });
  await type('echo $KEPT $(stty size) > /root/proof');
  await waitFor('the terminal', async () => (await sandbox.run('cat /root/proof 2>/dev/null || true')) !== '');
  expect(await sandbox.run('cat /root/proof')).toBe('in-the-shell 33 101\n');
  const counts = (await sandbox.run('cat /root/counts')).trim().split('\n').map(Number);
  expect(counts.length).toBeGreaterThan(cycles);
  expect(counts).toEqual(Array.from(counts, (_, index) => index + 1));
}, 400_000);

test('watches, timers, shared memory, deleted files and user IDs come back', async () => {
  await sandbox.launch(
    'kinds',
    `#!/usr/bin/env python3
import ctypes, fcntl, json, mmap, os, select, signal, socket, struct, subprocess, sys, time
libc = ctypes.CDLL(None)
checks = {}
os.makedirs('/root/watched', exist_ok=True)
own = libc.inotify_init1(os.O_NONBLOCK); libc.inotify_add_watch(own, b'/root/watched', 0x100)
low = libc.inotify_init1(os.O_NONBLOCK); libc.inotify_add_watch(low, b'/usr/share', 0x100)
gone = libc.inotify_init1(os.O_NONBLOCK)
without_name = open('/root/without-name', 'w+'); without_name.write('still here'); without_name.flush()
libc.inotify_add_watch(gone, b'/root/without-name', 0x2); os.unlink('/root/without-name')
of_layer = open('/usr/share/common-licenses/GPL-2'); os.unlink('/usr/share/common-licenses/GPL-2')
timer = libc.timerfd_create(1, os.O_NONBLOCK); libc.timerfd_settime(timer, 0, struct.pack('qqqq', 0, 50000000, 0, 50000000), None)
memory = os.memfd_create('m'); os.write(memory, b'm' * 100000)
open('/dev/shm/kept', 'wb').write(b's' * 3000000)
left, right = socket.socketpair(); left.send(b'on the way')
listener = socket.create_server(('127.0.0.1', 7001)); client = socket.create_connection(('127.0.0.1', 7001)); served, _ = listener.accept(); client.send(b'in the queue')
locked = open('/root/locked', 'w'); fcntl.flock(locked, fcntl.LOCK_EX)
user = subprocess.Popen(['sleep', '1000'], user=1000, group=1000, extra_groups=[1000, 4242])
stopped = subprocess.Popen(['sleep', '1000']); stopped.send_signal(signal.SIGSTOP)
before = time.monotonic()
open('/root/kinds.ready', 'w').close()
while not os.path.exists('/root/kinds.go'): time.sleep(0.02)
open('/root/watched/a', 'w').close(); checks['watch of own directory'] = len(os.read(own, 4096)) > 0
open('/usr/share/a', 'w').close(); checks['watch of a directory of the layer'] = len(os.read(low, 4096)) > 0
without_name.seek(0); checks['deleted file'] = without_name.read() == 'still here'
checks['deleted file of the layer'] = len(of_layer.read()) > 10000
time.sleep(0.2); checks['timer'] = struct.unpack('q', os.read(timer, 8))[0] >= 1
checks['memory file'] = os.pread(memory, 200000, 0) == b'm' * 100000
checks['shared memory'] = open('/dev/shm/kept', 'rb').read() == b's' * 3000000
checks['socket pair'] = right.recv(100) == b'on the way'
served.settimeout(5); first = served.recv(100); client.send(b'more'); checks['connection inside'] = (first, served.recv(100)) == (b'in the queue', b'more')
other = open('/root/locked', 'w')
try: fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB); checks['file lock'] = False
except BlockingIOError: checks['file lock'] = True
status = open('/proc/%d/status' % user.pid).read(); checks['user and groups'] = 'Uid:\\t1000\\t1000' in status and '4242' in status
checks['stopped process'] = open('/proc/%d/stat' % stopped.pid).read().split()[2] == 'T'
checks['monotonic clock'] = 0 <= time.monotonic() - before < 100
json.dump(checks, open('/root/kinds.new', 'w')); os.rename('/root/kinds.new', '/root/kinds.json')
`,
  );
  await waitFor('the program', async () =>
    (await sandbox.run('ls /root; cat /root/kinds.log >&2')).includes('kinds.ready'),
  );
  let tmpfs: number[] = [];
  sandbox = await machine.cycle(sandbox, 'kinds-1', directory => {
    const images = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter(name => name.includes('tmpfs'));
    tmpfs = images.map(name => statSync(join(directory, name)).size);
  });
  // Nothing was compressed, which would take most of the pause's time.
  expect(Math.max(...tmpfs)).toBeGreaterThan(3_000_000);
  sandbox = await machine.cycle(sandbox, 'kinds-2');
  await sandbox.run('touch /root/kinds.go');
  await waitFor('its verdict', async () => (await sandbox.run('ls /root')).includes('kinds.json'));
  const checks = JSON.parse(await sandbox.run('cat /root/kinds.json')) as Record<string, boolean>;
  expect(Object.keys(checks).length).toBe(13);
  expect(Object.entries(checks).filter(([, kept]) => !kept)).toEqual([]);
}, 120_000);

/** On the host. */
function agentPid(): number {
  const children = readFileSync(`/proc/${sandbox.pid}/task/${sandbox.pid}/children`, 'utf8').trim().split(' ');
  const nameOf = (child: string) => ifThere(() => readFileSync(`/proc/${child}/comm`, 'utf8').trim(), 'ended');
  return Number(children.find(child => nameOf(child) === 'agent') ?? 0);
}

async function killAgent(): Promise<void> {
  const before = agentPid();
  process.kill(before, 'SIGKILL');
  await waitFor('another agent', async () => ![0, before].includes(agentPid()));
  await sandbox.answers();
}

test('an agent that is killed after a pause takes over what runs, and so does one that is paused after that', async () => {
  const config = { cmd: '/bin/sh', args: ['-c', 'while [ ! -e /root/end ]; do sleep 0.05; done; exit 42'] };
  const started = await callAgent('Start', { process: config, tag: 'lasting' }, itsPid);
  const pid = Number(/"pid":(\d+)/.exec(started)?.[1]);
  const listed = async () => (await callAgent('List', {})).includes(`"pid":${pid},"tag":"lasting"`);
  // A window in which it gets older than the kernel counts of a process that was just restored.
  await Bun.sleep(2500);
  sandbox = await machine.cycle(sandbox, 'agent-1');
  await killAgent();
  expect(await listed()).toBe(true);
  sandbox = await machine.cycle(sandbox, 'agent-2');
  expect(await sandbox.run(`sleep 0.5; kill -0 ${pid} && echo runs`)).toBe('runs\n');
  expect(await listed()).toBe(true);
  await sandbox.run('touch /root/end');
  await waitFor('its end', async () => !(await listed()));
  expect(await callAgent('Connect', { process: { tag: 'lasting' } }, 'exit status')).toContain(
    '"status":"exit status 42"',
  );
}, 120_000);
