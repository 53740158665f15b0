import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, unlinkSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import type { Helper } from '../../src/node/native/helper.ts';
import { namelessFiles } from '../../src/node/snapshot/nameless-files.ts';
import { waitFor } from '../support/process.ts';

// What is found of files without a name, by the helper's program as built: native/snapshot-nameless.c.

const helperBinary = join(import.meta.dir, '../../dist/helper');
const helper = {
  async spawn(argv: string[], { stdin = '' }: Parameters<Helper['spawn']>[1]) {
    const { exitCode, stdout, stderr } = Bun.spawnSync(argv, { stdin: Buffer.from(`${stdin}\n`), stderr: 'pipe' });
    return { status: exitCode, output: `${stdout}${stderr}` };
  },
} as Helper;

const look = (pids: readonly number[], most?: { looks: number; bytes: number }) =>
  namelessFiles({ helper, helperBinary }, { pids }, most);

/** What those of this process take of the disk. */
const diskBytesOf = async (...pids: number[]) => (await look(pids)).diskBytes;

test('files that are open and have no name count once, with what they take of the disk', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-nameless-'));
  const opened: number[] = [];
  const open = (name: string) => {
    const file = openSync(join(folder, name), 'a+');
    opened.push(file);
    return file;
  };
  try {
    const before = await diskBytesOf(process.pid);
    for (const name of ['named', 'deleted']) writeSync(open(name), Buffer.alloc(1 << 20, 1));
    open('deleted');
    unlinkSync(join(folder, 'deleted'));
    const after = await diskBytesOf(process.pid, process.pid);
    expect(after - before).toBeGreaterThanOrEqual(1 << 20);
    expect(after - before).toBeLessThan(2 << 20);
  } finally {
    for (const file of opened) closeSync(file);
    rmSync(folder, { recursive: true });
  }
});

test('a file without a name that is mapped only counts too, however long its name was', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-nameless-'));
  try {
    // As long as a path may be, of a character that the kernel writes as four.
    const deep = join(folder, ...Array.from({ length: 15 }, () => '\n'.repeat(250)));
    mkdirSync(deep, { recursive: true });
    const before = await diskBytesOf(process.pid);
    writeFileSync(join(deep, 'mapped'), Buffer.alloc(1 << 20, 1));
    const mapped = Array.from({ length: 1_000 }, () => Bun.mmap(join(deep, 'mapped')));
    rmSync(folder, { recursive: true });
    const after = await diskBytesOf(process.pid);
    expect(after - before).toBeGreaterThanOrEqual(1 << 20);
    expect(after - before).toBeLessThan(2 << 20);
    expect(mapped[0]?.[0]).toBe(1);
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
sys.stdin.readline()
for _ in range(3): held.append(os.memfd_create("c")), os.ftruncate(held[-1], (1 << 63) - 4096)
sys.stdin.readline()
`;
  await using holder = Bun.spawn(['python3', '-c', program], { stdin: 'pipe', stdout: 'pipe' });
  await holder.stdout.getReader().read();
  const { pid } = holder;
  const memoryBytes = 2 * 2 ** 40 + 2 ** 30;
  expect(await look([pid, pid])).toEqual({ diskBytes: 0, memoryBytes, isAll: true });
  expect(await look([pid], { looks: 0, bytes: 1 << 20 })).toEqual({ diskBytes: 0, memoryBytes: 0, isAll: false });
  await holder.stdin.write('go on\n');
  // However many of the greatest length there are.
  await waitFor('great files', async () => (await look([pid])).memoryBytes > 2 ** 63);
  holder.kill();
});

test('processes that have ended have none', async () => {
  expect(await look([2 ** 30])).toEqual({ diskBytes: 0, memoryBytes: 0, isAll: true });
});

test('beyond the limit of files, of lists and of processes, it is said that there are more', async () => {
  expect(await look([process.pid], { looks: 2, bytes: 1 << 20 })).toMatchObject({ isAll: false });
  expect(await look([process.pid], { looks: 1_000, bytes: 100 })).toMatchObject({ isAll: false });
  expect(await look(Array.from({ length: 8_001 }, () => 1))).toMatchObject({ isAll: false });
});

test('a program that could not look in time says what is in its way', async () => {
  const stuck = { spawn: async () => ({ status: 137, output: '' }) } as unknown as Helper;
  const looked = namelessFiles({ helper: stuck, helperBinary }, { pids: [process.pid] });
  await expect(looked).rejects.toMatchObject({ code: 'unavailable' });
});
