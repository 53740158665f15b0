import { afterAll, beforeAll, expect, test } from 'bun:test';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../src/base/error.ts';
import { checkpointAndRun, checkpointToPause } from '../../src/node/snapshot/checkpoint.ts';
import { findMemoryKeeping } from '../../src/node/snapshot/memory-keeping.ts';
import type { LaterMeasure } from '../../src/node/snapshot/later-pages.ts';
import { openSnapshot, type OpenSnapshot } from '../../src/node/snapshot/restore.ts';
import { testMemoryKeeping } from '../../src/node/snapshot/self-test.ts';
import { waitFor } from '../support/process.ts';
import { startMachine, type Machine, type TestSandbox } from './support/machine.ts';

/** A file system without room for any memory. */
const full = mkdtempSync(join(tmpdir(), 'atoll-full-'));
let machine: Machine;
let sandbox: TestSandbox;

beforeAll(async () => {
  // Before the helper starts: it does not see later mounts.
  expect(Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', full]).exitCode).toBe(0);
  machine = await startMachine();
  sandbox = await machine.start(0);
  await sandbox.run('echo kept > /root/file');
}, 120_000);

afterAll(async () => {
  await machine.kill(sandbox);
  await machine[Symbol.asyncDispose]();
  Bun.spawnSync(['umount', full]);
  rmSync(full, { recursive: true });
}, 60_000);

const pause = (
  directory: string,
  changes: { signal?: AbortSignal; then?: 'end' | 'freeze'; onComplete?(): Promise<void> } = {},
) =>
  checkpointToPause(machine.host, sandbox.source, {
    directory,
    name: 'refused',
    facts: {},
    then: 'end',
    onComplete: async () => {},
    ...changes,
  });

const errorOf = async (work: Promise<unknown>): Promise<AtollError> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof AtollError)) throw new Error(`expected an AtollError, got ${String(error)}`);
  return error;
};

const stillRuns = async () => expect(await sandbox.run('cat /root/file; sleep 0.01')).toBe('kept\n');

test('a full disk leaves the sandbox running and nothing behind', async () => {
  const error = await errorOf(pause(join(full, 'pause')));
  expect(error.code).toBe('no_space');
  expect(error.message).toContain('full');
  expect(readdirSync(full)).toEqual([]);
  await stillRuns();
});

test('files in memory that are holes for terabytes are refused before CRIU goes through them', async () => {
  const program =
    'import os,time\nos.ftruncate(os.memfd_create("x"), 2 << 40)\nopen("/root/ready","w")\ntime.sleep(1000)';
  await sandbox.launch('holes', `#!/usr/bin/env python3\n${program}\n`);
  await waitFor('the file', () => sandbox.run('ls /root/ready').catch(() => undefined));
  const error = await errorOf(pause(join(machine.snapshots, 'holes')));
  expect([error.code, error.message]).toEqual([
    'precondition',
    'the memory of the sandbox can’t be kept: its files in memory are 2.0 TiB long with their holes, the most is 1',
  ]);
  expect(readdirSync(machine.snapshots)).toEqual([]);
  await sandbox.run('pkill -x python3');
  await stillRuns();
});

test('a pause that the caller can’t write down, or gives up, is undone', async () => {
  const directory = join(machine.snapshots, 'undone');
  const error = await errorOf(
    pause(directory, { onComplete: () => Promise.reject(new AtollError('internal', 'the record can’t be written')) }),
  );
  expect(error.message).toBe('the record can’t be written');
  const abort = new AbortController();
  abort.abort(new AtollError('canceled', 'given up'));
  expect((await errorOf(pause(directory, { signal: abort.signal }))).code).toBe('canceled');
  expect(readdirSync(machine.snapshots)).toEqual([]);
  await stillRuns();
});

test('what can’t be checkpointed is named, and the sandbox runs on', async () => {
  // A connection with data in it that nobody has accepted yet: CRIU can't keep that.
  await sandbox.launch(
    'odd',
    `#!/usr/bin/env python3
import socket, time
listener = socket.socket(socket.AF_UNIX); listener.bind('/root/odd.socket'); listener.listen()
client = socket.socket(socket.AF_UNIX); client.connect('/root/odd.socket'); client.send(b'x')
open('/root/odd.ready', 'w').close()
time.sleep(1000)
`,
  );
  await waitFor('the connection', () => sandbox.run('ls /root/odd.ready').catch(() => undefined));
  const error = await errorOf(pause(join(machine.snapshots, 'odd')));
  expect(error.code).toBe('unavailable');
  expect(error.message).toContain('in-flight socket');
  await sandbox.run('pkill -f /root/odd');
  await stillRuns();
  expect(readdirSync(machine.snapshots)).toEqual([]);
});

test('more open files than a node looks through are named, and the sandbox runs on', async () => {
  // Their names make the image large: 5,000 times 3,600 characters.
  await sandbox.launch(
    'many',
    `#!/usr/bin/env python3
import os, resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, (6000, 6000))
for _ in range(18):
    os.mkdir('d' * 199); os.chdir('d' * 199)
files = [open('file', 'a') for _ in range(5000)]
os.chdir('/root')
open('/root/many.ready', 'w').close()
time.sleep(1000)
`,
  );
  await waitFor('the files', () => sandbox.run('ls /root/many.ready').catch(() => undefined));
  for (const then of ['end', 'freeze'] as const) {
    const error = await errorOf(pause(join(machine.snapshots, 'many'), { then }));
    expect(error).toMatchObject({ code: 'precondition', message: expect.stringContaining('too many files') });
    await stillRuns();
  }
  await sandbox.run('pkill -f /root/many');
  expect(readdirSync(machine.snapshots)).toEqual([]);
});

test('a snapshot that is damaged, cut off or not complete is refused', async () => {
  const directory = join(machine.snapshots, 'damaged');
  await checkpointAndRun(machine.host, sandbox.source, { directory, name: 'damaged', facts: {} });
  await stillRuns();
  const whole = async () => {
    const snapshot = await openSnapshot(machine.host, directory);
    await snapshot.memoryWhole();
    return snapshot;
  };
  expect((await whole()).manifest.memory).toBe(true);

  const names = readdirSync(directory).filter(
    name => name.endsWith('.img') && statSync(join(directory, name)).size > 0,
  );
  expect(names.length).toBeGreaterThan(20);
  const pages = names.filter(name => name.startsWith('pages-')).map(name => join(directory, name));
  const victims = [
    ...pages.slice(0, 1),
    join(directory, 'disk.img'),
    join(directory, 'manifest.json'),
    join(directory, 'core-1.img'),
  ];
  for (const victim of victims) {
    const at = victim.endsWith('disk.img') ? 1024 : Math.floor(statSync(victim).size / 2); // a disk's second KiB is its superblock
    const flip = () => {
      const file = openSync(victim, 'r+');
      const byte = Buffer.alloc(1);
      readSync(file, byte, 0, 1, at);
      writeSync(file, Buffer.of(byte.readUInt8() ^ 1), 0, 1, at);
      closeSync(file);
    };
    flip();
    const error = await errorOf(whole());
    expect([victim, error.code, error.detail ?? '']).toEqual([
      victim,
      'unavailable',
      victim.endsWith('manifest.json') ? (error.detail ?? '') : 'snapshot_damaged',
    ]);
    flip();
  }
  await whole();

  truncateSync(pages[0] as string, 100);
  expect((await errorOf(whole())).message).toContain('another size');
  rmSync(pages[0] as string);
  expect((await errorOf(whole())).code).toBe('unavailable');
  rmSync(directory, { recursive: true });
  mkdirSync(`${directory}.partial`);
  expect((await errorOf(openSnapshot(machine.host, directory))).code).toBe('not_found');
  rmSync(`${directory}.partial`, { recursive: true });
}, 120_000);

test('the self-test finds that memory can be kept, leaves nothing, and is made once', async () => {
  const directory = join(machine.snapshots, 'self-test');
  const cacheFile = join(machine.host.runDir, 'memory-keeping.json');
  let tests = 0;
  const parts = {
    start: () => machine.start(20),
    release: (tested: TestSandbox) => machine.release(tested),
    restore: async (snapshot: OpenSnapshot, later: LaterMeasure | undefined) =>
      machine.restore(snapshot, later ? 22 : 21, disk, later),
    kill: (tested: TestSandbox) => machine.kill(tested),
    removeDisk: () => rmSync(disk, { force: true }),
  };
  let disk = '';
  const start = parts.start;
  parts.start = async () => {
    const tested = await start();
    disk = tested.source.disk;
    return tested;
  };
  const find = (criuDir: string) =>
    findMemoryKeeping({
      criuDir,
      cacheFile,
      test: async () => {
        tests++;
        return testMemoryKeeping(machine.host, parts, directory);
      },
    });
  const criuDir = join(import.meta.dir, '../../dist/criu');
  expect(await find(criuDir)).toMatchObject({ possible: true, notLater: null });
  expect(await find(criuDir)).toMatchObject({ possible: true, criu: { version: machine.host.criu.version } });
  expect(tests).toBe(1);
  expect(existsSync(directory)).toBe(false);
  expect(await find('/nonexistent')).toEqual({ possible: false, reason: 'CRIU was not set up: run `npm run up`' });
  // If memory can't arrive later, or not at all.
  for (const failing of [true, false]) {
    const { restore } = parts;
    const without: typeof parts = {
      ...parts,
      async restore(snapshot, later) {
        if (!later === failing) return restore(snapshot, later);
        throw new Error('it broke');
      },
    };
    const found = testMemoryKeeping(machine.host, without, directory);
    if (failing) expect(await found).toEqual({ notLater: 'it broke' });
    else await expect(found).rejects.toThrow('it broke');
    expect([existsSync(directory), existsSync(disk)]).toEqual([false, false]);
  }
  await stillRuns();
}, 120_000);
