import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../src/base/error.ts';
import { readIfThere } from '../../src/base/small-file.ts';
import { checkpointToPause } from '../../src/node/snapshot/checkpoint.ts';
import { bringLater, forgetLater, forgetLaterBut } from '../../src/node/snapshot/later-memory.ts';
import { anyMemory, muchMemory } from '../../src/node/snapshot/later-pages.ts';
import { openSnapshot } from '../../src/node/snapshot/restore.ts';
import { waitFor } from '../support/process.ts';
import { bringersLeft, bringersOf, plansOf, waitersOf, type Bringers } from './support/bringers.ts';
import { startMachine, type Machine, type RestoreHooks, type TestSandbox } from './support/machine.ts';

// Memory that arrives while the sandbox runs: it is unchanged, whatever the programs do meanwhile; and what happens to
// the sandbox if it can't arrive.

let machine: Machine;
const sandboxes = new Set<TestSandbox>();

beforeAll(async () => {
  machine = await startMachine();
}, 120_000);

afterEach(async () => {
  for (const sandbox of sandboxes) await machine.kill(sandbox);
  sandboxes.clear();
  // Nobody brings memory for a sandbox that has ended.
  await waitFor('the end of those who bring memory', () => bringersLeft(runDir()) === 0);
  for (const name of readdirSync(machine.snapshots)) rmSync(join(machine.snapshots, name), { recursive: true });
});

afterAll(async () => {
  await machine[Symbol.asyncDispose]();
}, 60_000);

/**
 * Has areas of memory whose content depends on the place. `sum` reads one; `meanwhile` does to all of them, each in a
 * thread and at once, what programs do with their memory, and answers any errors it found.
 */
const large = `#!/usr/bin/env python3
import ctypes, hashlib, mmap, os, random, socket, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.madvise.argtypes = libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
MiB, page, size = 1 << 20, 4096, 32 << 20
block = random.Random(1).randbytes(MiB)
def content(area, at): return (area * size + at).to_bytes(8, 'little') + block[8:]
def fill(area):
    place = libc.mmap(None, size, 3, 0x22, -1, 0)
    for at in range(0, size, MiB): ctypes.memmove(place + at, content(area, at), MiB)
    return place
areas = [fill(area) for area in range(7)]
def read(place, length): return ctypes.string_at(place, length)
wrong = []
def check(what, area, place, begin=0, end=size):
    for at in random.sample(range(begin, end, MiB), (end - begin) // MiB):
        if read(place + at, MiB) != content(area, at): wrong.append('%s at %d' % (what, at))
def zero(what, place, length):
    if read(place, length) != bytes(length): wrong.append(what + ' is not zero')
def plain(area): check('plain', area, areas[area])
def moved(area):
    areas[area] = libc.mremap(areas[area], size, size + 16 * MiB, 1, None)
    check('moved', area, areas[area]); zero('grown', areas[area] + size, 16 * MiB)
def moved_in_parts(area):
    place = libc.mmap(None, size, 0, 0x22, -1, 0)
    for at in reversed(range(0, size, MiB // 4)): libc.mremap(areas[area] + at, MiB // 4, MiB // 4, 3, place + at)
    areas[area] = place
    check('moved in parts', area, place)
def given_back(area):
    libc.madvise(areas[area] + 8 * MiB, 16 * MiB, 4)
    zero('given back', areas[area] + 8 * MiB, 16 * MiB)
    check('beside given back', area, areas[area], 24 * MiB, size)
    for at in range(8 * MiB, 24 * MiB, MiB): ctypes.memmove(areas[area] + at, content(area, at), MiB)
def unmapped(area):
    libc.munmap(areas[area] + 4 * MiB, 4 * MiB)
    libc.mmap(areas[area] + 4 * MiB, 4 * MiB, 3, 0x32, -1, 0)
    zero('mapped anew', areas[area] + 4 * MiB, 4 * MiB)
    check('beside unmapped', area, areas[area], 8 * MiB, size)
    for at in range(4 * MiB, 8 * MiB, MiB): ctypes.memmove(areas[area] + at, content(area, at), MiB)
def split(area):
    for at in range(0, size, 17 * page): libc.mprotect(areas[area] + at, page, 1)
    check('split', area, areas[area])
    libc.mprotect(areas[area], size, 3)
def forked(area):
    child = os.fork()
    if child == 0:
        del wrong[:]
        check('forked', area, areas[area])
        os._exit(1 if wrong else 0)
    ctypes.memset(areas[area], 7, MiB)
    if os.waitpid(child, 0)[1]: wrong.append('the child had other memory')
    ctypes.memmove(areas[area], content(area, 0), MiB)
    check('parent', area, areas[area])
def meanwhile():
    del wrong[:]
    threads = [threading.Thread(target=what, args=(area,)) for area, what in enumerate([plain, moved, moved_in_parts, given_back, unmapped, split, forked])]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return ', '.join(wrong) or 'nothing'
listener = socket.create_server(('127.0.0.1', 7000))
while True:
    connection, _ = listener.accept()
    word, _, area = connection.recv(100).decode().strip().partition(' ')
    if word == 'sum': answer = hashlib.blake2b(read(areas[int(area)], size)).hexdigest()
    elif word == 'open':
        files = [os.open('/dev/null', 0) for _ in range(int(area))]
        answer = str(files[-1])
    elif word == 'meanwhile': answer = meanwhile()
    else: answer = 'ready'
    connection.send(answer.encode()); connection.close()
`;
const areas = [0, 1, 2, 3, 4, 5, 6];

const ask = (sandbox: TestSandbox, what: string) =>
  sandbox.run(`exec 3<> /dev/tcp/127.0.0.1/7000; echo ${what} >&3; cat <&3`);
const sums = async (sandbox: TestSandbox) => {
  const found: string[] = [];
  for (const area of areas) found.push(await ask(sandbox, `sum ${area}`));
  return found;
};

const runDir = () => machine.host.runDir;
const plans = () => plansOf(runDir());

async function startLarge(): Promise<TestSandbox> {
  const sandbox = await machine.start(0);
  sandboxes.add(sandbox);
  await sandbox.launch('large', large);
  await waitFor('the program', () => ask(sandbox, 'ready').catch(() => undefined));
  return sandbox;
}

/** Pauses and ends it; answers the snapshot's directory. */
async function pause(sandbox: TestSandbox): Promise<string> {
  const directory = join(machine.snapshots, `large-${Math.random()}`);
  const options = { directory, name: 'large', facts: {}, then: 'end' as const, onComplete: async () => {} };
  await checkpointToPause(machine.host, sandbox.source, options);
  await machine.release(sandbox);
  sandboxes.delete(sandbox);
  return directory;
}

async function restore(sandbox: TestSandbox, directory: string, hooks: RestoreHooks = {}): Promise<TestSandbox> {
  const slot = (sandbox.slot.number + 1) % 10;
  const snapshot = await openSnapshot(machine.host, directory);
  const restored = await machine.restore(snapshot, slot, sandbox.source.disk, muchMemory, hooks);
  sandboxes.add(restored);
  return restored;
}

/** Waits for the end of a sandbox that nobody kills. */
async function ended(sandbox: TestSandbox): Promise<void> {
  await machine.release(sandbox);
  sandboxes.delete(sandbox);
}

/** Makes the bringer of memory stand still before the first process runs. */
async function restoreAndHold(sandbox: TestSandbox, directory: string) {
  let found: Bringers | undefined;
  const restored = await restore(sandbox, directory, {
    async onRestored() {
      found = await waitFor('who brings memory', () => bringersOf(runDir())[0]);
      process.kill(found.bringer, 'SIGSTOP');
    },
  });
  return { restored, ...(found as Bringers) };
}

test('memory comes while the sandbox runs, and is what it was', async () => {
  let sandbox = await startLarge();
  const before = await sums(sandbox);
  for (let round = 0; round < 2; round++) {
    const directory = await pause(sandbox);
    const { restored, bringer } = await restoreAndHold(sandbox, directory);
    // The saved state is no longer needed under its name.
    rmSync(directory, { recursive: true });
    expect(plans()).toHaveLength(1);
    process.kill(bringer, 'SIGCONT');
    expect(await sums(restored)).toEqual(before);
    await waitFor('all memory', () => plans().length === 0 && bringersLeft(runDir()) === 0);
    expect(readdirSync(machine.host.stagingDir)).toEqual([]);
    sandbox = restored;
  }
}, 120_000);

test('whatever programs do with their memory meanwhile, each sees what it should', async () => {
  let sandbox = await startLarge();
  const before = await sums(sandbox);
  for (let round = 0; round < 6; round++) {
    const directory = await pause(sandbox);
    const { restored, bringer } = await restoreAndHold(sandbox, directory);
    const found = ask(restored, 'meanwhile');
    process.kill(bringer, 'SIGCONT');
    expect(await found).toBe('nothing');
    expect(await sums(restored)).toEqual(before);
    sandbox = restored;
  }
}, 240_000);

const hugePages = (pid: number) => /^THP_enabled:\t(\d)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];

test('no page is there because one beside it was put back: huge pages are for afterwards', async () => {
  const sandbox = await startLarge();
  expect(hugePages(sandbox.pid)).toBe('1');
  let meanwhile: (string | undefined)[] = [];
  const restored = await restore(sandbox, await pause(sandbox), {
    async onNamespaces(pid) {
      meanwhile = [hugePages(pid)];
    },
  });
  expect([...meanwhile, ...restored.source.group.processes().map(hugePages)]).toEqual(['0', '1', '1', '1']);
}, 120_000);

test('a pause waits until all memory is there', async () => {
  const sandbox = await startLarge();
  const before = await sums(sandbox);
  const { restored, bringer } = await restoreAndHold(sandbox, await pause(sandbox));
  let paused = false;
  const pausing = pause(restored).finally(() => (paused = true));
  await waitFor('the pause to wait', () => waitersOf(runDir()).length > 0);
  expect(paused).toBe(false);
  process.kill(bringer, 'SIGCONT');
  expect(await sums(await restore(restored, await pausing))).toEqual(before);
}, 120_000);

test('where whoever brings memory is killed the sandbox ends, and none of its programs sees what is not its memory', async () => {
  const sandbox = await startLarge();
  const { restored, bringer } = await restoreAndHold(sandbox, await pause(sandbox));
  const seen = ask(restored, 'meanwhile').catch(() => 'ended');
  process.kill(bringer, 'SIGKILL');
  await ended(restored);
  expect(await seen).toBe('ended');
  await waitFor('the end of its plan', () => plans().length === 0);
  // It was killed, and has said nothing.
  expect(forgetLater(runDir(), restored.slot.name)).toBeUndefined();
}, 120_000);

test('where the other one of the two is killed memory still comes; as nobody can say that it did, it is kept no more', async () => {
  const sandbox = await startLarge();
  const before = await sums(sandbox);
  const { restored, keeper, bringer } = await restoreAndHold(sandbox, await pause(sandbox));
  process.kill(keeper, 'SIGKILL');
  process.kill(bringer, 'SIGCONT');
  expect(await sums(restored)).toEqual(before);
  expect(await pause(restored).catch((error: AtollError) => error.message)).toContain('did not all come back');
  await ended(restored);
  forgetLater(runDir(), restored.slot.name);
}, 120_000);

test('a sandbox may end before its memory is there', async () => {
  const sandbox = await startLarge();
  const { restored, bringer } = await restoreAndHold(sandbox, await pause(sandbox));
  await machine.kill(restored);
  sandboxes.delete(restored);
  process.kill(bringer, 'SIGCONT');
  await waitFor('the end of its plan', () => plans().length === 0 && bringersLeft(runDir()) === 0);
}, 120_000);

test('a restore that fails leaves nobody who brings memory', async () => {
  const sandbox = await startLarge();
  const directory = await pause(sandbox);
  for (const hook of ['onNamespaces', 'onRestored'] as const) {
    const hooks = { [hook]: async () => Promise.reject(new Error('not now')) };
    expect(await restore(sandbox, directory, hooks).catch((error: Error) => error.message)).toBe('not now');
    await machine.abandon((sandbox.slot.number + 1) % 10);
    expect([plans(), bringersLeft(runDir())]).toEqual([[], 0]);
  }
  expect(await restore(sandbox, directory).then(restored => ask(restored, 'ready'))).toBe('ready');
}, 120_000);

/** Processes of CRIU that restore into a slot. */
const restoring = (slot: number) =>
  readdirSync('/proc').filter(name => {
    const argv = /^\d+$/.test(name) ? (readIfThere(`/proc/${name}/cmdline`) ?? '') : '';
    return argv.split('\0').includes(join(runDir(), `restore-s${slot}.conf`));
  });

test('a restore whose CRIU alone is killed fails soon, and leaves none of the processes that CRIU has made', async () => {
  const sandbox = await startLarge();
  const directory = await pause(sandbox);
  const slot = (sandbox.slot.number + 1) % 10;
  for (const hook of ['onNamespaces', 'onRestored'] as const) {
    let made = 0;
    const killParent = async (first: number) => {
      made = restoring(slot).length;
      process.kill(Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${first}/status`, 'utf8'))?.[1]), 'SIGKILL');
    };
    const failure = await restore(sandbox, directory, { [hook]: killParent }).catch((error: Error) => error.message);
    expect(failure).toContain('CRIU was ended by signal 9 before the memory of the sandbox was put back');
    expect(made).toBeGreaterThan(1);
    await machine.abandon(slot);
    await waitFor('the end of what CRIU has made', () => restoring(slot).length === 0);
    expect([plans(), bringersLeft(runDir())]).toEqual([[], 0]);
  }
}, 120_000);

test('who waits for a CRIU that was never started ends when the next platform forgets it', async () => {
  const sandbox = await startLarge();
  const directory = await pause(sandbox);
  const [imagesDir, group] = [join(directory, 'images'), join(directory, 'nobody')];
  for (const folder of [imagesDir, group]) mkdirSync(folder);
  await bringLater(machine.host, { slotName: 's9', directory, imagesDir, group, pages: { later: [], now: [] } });
  expect([plans().length, bringersLeft(runDir())]).toEqual([1, 2]);
  forgetLaterBut(runDir(), new Set(['s8']));
  await waitFor('the end of both', () => bringersLeft(runDir()) === 0);
  expect(plans()).toEqual([]);
}, 120_000);

/** Changes a byte of the largest memory image, as a disk might. */
function damage(directory: string, part: number): void {
  const sizes = readdirSync(directory)
    .filter(name => name.startsWith('pages-'))
    .map(name => ({ name, size: statSync(join(directory, name)).size }))
    .toSorted((a, b) => b.size - a.size);
  const { name, size } = sizes[0] as { name: string; size: number };
  const fd = openSync(join(directory, name), 'r+');
  const byte = Buffer.alloc(1);
  readSync(fd, byte, 0, 1, Math.floor(size * part));
  writeSync(fd, Buffer.from([(byte[0] as number) ^ 1]), 0, 1, Math.floor(size * part));
  closeSync(fd);
}

test('memory that is damaged is given to nobody: the sandbox ends where it would come later', async () => {
  const sandbox = await startLarge();
  const directory = await pause(sandbox);
  damage(directory, 0.5);
  // It begins to arrive before CRIU has ended, and CRIU ends with the sandbox: the damage must not be found earlier.
  const { restored, bringer } = await restoreAndHold(sandbox, directory);
  process.kill(bringer, 'SIGCONT');
  await ended(restored);
  expect(forgetLater(runDir(), restored.slot.name)).toMatch(/^pages-\d+\.img: Bad message$/);
}, 120_000);

test('damage that is found before CRIU has ended is told as damage, and nothing runs', async () => {
  const sandbox = await startLarge();
  const directory = await pause(sandbox);
  damage(directory, 0.5);
  const slot = (sandbox.slot.number + 1) % 10;
  const error = await restore(sandbox, directory, {
    async beforeResume() {
      await waitFor('the end of who brings memory', () => bringersLeft(runDir()) === 0);
    },
  }).catch((error: AtollError) => error);
  expect(error).toMatchObject({ code: 'unavailable', detail: 'snapshot_damaged' });
  expect(plans()).toEqual([]);
  await machine.abandon(slot);
}, 120_000);

test('where what comes at once is damaged nothing runs', async () => {
  const sandbox = await startLarge();
  const directory = await pause(sandbox);
  const measure = { ...muchMemory, pieceBytes: 1 << 40 };
  for (const later of [measure, muchMemory]) {
    // The end of the image is the stack.
    damage(directory, 0.99999);
    const slot = (sandbox.slot.number + 1) % 10;
    const snapshot = await openSnapshot(machine.host, directory);
    const error = await machine.restore(snapshot, slot, sandbox.source.disk, later).catch((error: AtollError) => error);
    expect(error).toMatchObject({ code: 'unavailable', detail: 'snapshot_damaged' });
    await machine.abandon(slot);
    damage(directory, 0.99999);
  }
}, 120_000);

test('a sandbox with as many open files as the descriptor that is handed down is not restored so', async () => {
  const sandbox = await startLarge();
  expect(Number(await ask(sandbox, 'open 1100'))).toBeGreaterThan(1000);
  const directory = await pause(sandbox);
  const error = await restore(sandbox, directory).catch((error: AtollError) => error);
  expect(error).toMatchObject({ code: 'unavailable', detail: 'checkpoint_failed' });
  await machine.abandon((sandbox.slot.number + 1) % 10);
  const snapshot = await openSnapshot(machine.host, directory);
  const restored = await machine.restore(snapshot, 5, sandbox.source.disk);
  sandboxes.add(restored);
  expect(await ask(restored, 'ready')).toBe('ready');
}, 120_000);

test('a small sandbox comes back with memory that comes later, too, where it is told to', async () => {
  const sandbox = await machine.start(0);
  sandboxes.add(sandbox);
  const directory = await pause(sandbox);
  const snapshot = await openSnapshot(machine.host, directory);
  const restored = await machine.restore(snapshot, 1, sandbox.source.disk, anyMemory);
  sandboxes.add(restored);
  expect(await restored.run('echo here')).toBe('here\n');
}, 120_000);
