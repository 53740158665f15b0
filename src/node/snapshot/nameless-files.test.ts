import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, unlinkSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { memoryFileBytes, namelessBytes } from './nameless-files.ts';

/** The bytes that they take, if all files are looked at. */
const bytesOf = async (...pids: number[]) => (await namelessBytes(pids)) ?? Number.NaN;

test('files that are open and have no name count once, with what they take of the disk', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-nameless-'));
  const opened: number[] = [];
  const open = (name: string) => {
    const file = openSync(join(folder, name), 'a+');
    opened.push(file);
    return file;
  };
  try {
    const before = await bytesOf(process.pid);
    for (const name of ['named', 'deleted']) writeSync(open(name), Buffer.alloc(1 << 20, 1));
    open('deleted');
    unlinkSync(join(folder, 'deleted'));
    const after = await bytesOf(process.pid, process.pid);
    expect(after - before).toBeGreaterThanOrEqual(1 << 20);
    expect(after - before).toBeLessThan(2 << 20);
  } finally {
    for (const file of opened) closeSync(file);
    rmSync(folder, { recursive: true });
  }
});

test('a file without a name that is mapped only counts too', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-nameless-'));
  try {
    const before = await bytesOf(process.pid);
    writeFileSync(join(folder, 'mapped'), Buffer.alloc(1 << 20, 1));
    const mapped = Bun.mmap(join(folder, 'mapped'));
    rmSync(folder, { recursive: true });
    expect((await bytesOf(process.pid)) - before).toBeGreaterThanOrEqual(1 << 20);
    expect(mapped[0]).toBe(1);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('other work continues while many mappings of a file with a long name are read', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-nameless-'));
  try {
    // Names with the separators of /proc/PID/maps, as many as a path has room for.
    const deep = join(folder, ...Array.from({ length: 15 }, () => 'a '.repeat(120)));
    mkdirSync(deep, { recursive: true });
    writeFileSync(join(deep, 'file'), 'x');
    const mapped = Array.from({ length: 5_000 }, () => Bun.mmap(join(deep, 'file')));
    // Processor time of this process: on a busy machine, elapsed time would count the work of others.
    const spentUs = () => process.cpuUsage().user + process.cpuUsage().system;
    const begunUs = spentUs();
    let [lastUs, longestUs] = [begunUs, 0];
    let next = setImmediate(function turn() {
      longestUs = Math.max(longestUs, spentUs() - lastUs);
      lastUs = spentUs();
      next = setImmediate(turn);
    });
    await namelessBytes([process.pid]);
    clearImmediate(next);
    longestUs = Math.max(longestUs, spentUs() - lastUs);
    expect(longestUs).toBeLessThan((spentUs() - begunUs) / 3);
    expect(mapped.length).toBe(5_000);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('files in memory count with their holes, once, whether open or mapped', async () => {
  const program = `
import mmap, os, sys
held = [os.memfd_create("a"), os.memfd_create("b"), os.open("/dev/zero", os.O_RDONLY)]
for file in held[:2]: os.ftruncate(file, 1 << 40)
seen = mmap.mmap(held[0], 1 << 39)
os.close(held.pop(0))
shared = mmap.mmap(-1, 1 << 30)
print("there", flush=True)
sys.stdin.read()
`;
  await using holder = Bun.spawn(['python3', '-c', program], { stdin: 'pipe', stdout: 'pipe' });
  await holder.stdout.getReader().read();
  const { pid } = holder;
  expect(await memoryFileBytes([pid, pid])).toBe(2 * 2 ** 40 + 2 ** 30);
  expect(await memoryFileBytes([pid], { looks: 0, bytes: 1 << 20 })).toBe(0);
  expect(await bytesOf(pid)).toBe(0);
  holder.kill();
});

test('processes that have ended have none', async () => {
  expect(await namelessBytes([2 ** 30])).toBe(0);
});

test('beyond the limit of files, the bytes of those without a name are unknown', async () => {
  expect(await namelessBytes([process.pid], { looks: 2, bytes: 1 << 20 })).toBeNull();
  expect(await namelessBytes([process.pid], { looks: 1_000, bytes: 100 })).toBeNull();
});
