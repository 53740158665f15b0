import { afterEach, expect, test } from 'bun:test';
import { appendFileSync, mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../base/telemetry/log.ts';
import { type LogStore, openLogStore } from './log-store.ts';
import { pruneSegments } from './prune.ts';

const directories: string[] = [];
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true });
});
function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-logs-'));
  directories.push(directory);
  return directory;
}
const open = (directory: string) => openLogStore({ directory, bytesMax: 1 << 30, log: silentLog });
const all = { sandboxId: 's', backward: false, limit: 1000 } as const;
/** Adds an entry of an agent; by default one that fills a file on its own. */
function say(store: LogStore, sandboxId: string, message: string, timestampMs = Date.now(), length = 1 << 20): void {
  const entry = {
    timestampMs,
    level: 'info',
    logger: 'process',
    message: message.padEnd(length, 'x'),
    fields: {},
  } as const;
  store.add(sandboxId, entry, { epoch: 'e', number: 1 });
}

test('entries come in order, each with a time of its own, and survive a restart', async () => {
  const directory = newDirectory();
  const store = open(directory);
  for (let count = 0; count < 50; count++) store.write('s', 'info', 'sandbox', `entry ${count}`);
  store.add(
    's',
    { timestampMs: 5, level: 'warn', logger: 'process', message: 'from the agent', fields: { pid: '7' } },
    { epoch: 'e', number: 12 },
  );
  const entries = await store.read(all);
  expect(entries.map(entry => entry.message)).toEqual([
    ...Array.from({ length: 50 }, (_, count) => `entry ${count}`),
    'from the agent',
  ]);
  expect(new Set(entries.map(entry => entry.timestampMs)).size).toBe(51);
  expect(entries.map(entry => entry.timestampMs)).toEqual(
    entries.map(entry => entry.timestampMs).toSorted((a, b) => a - b),
  );
  await store.close();

  const again = open(directory);
  expect(await again.read(all)).toEqual(entries);
  expect(await again.place('s')).toEqual({ epoch: 'e', number: 12 });
  again.write('s', 'info', 'sandbox', 'after');
  const [last] = await again.read({ ...all, backward: true, limit: 1 });
  expect(last?.message).toBe('after');
  expect(last?.timestampMs).toBeGreaterThan(entries.at(-1)?.timestampMs ?? 0);
  await again.close();
});

test('a reader behind the last entry gets nothing until there is another', async () => {
  const store = open(newDirectory());
  store.write('s', 'info', 'sandbox', 'first');
  const [first] = await store.read(all);
  const behind = { ...all, fromMs: (first?.timestampMs ?? 0) + 1 };
  expect(await store.read(behind)).toEqual([]);
  store.write('s', 'info', 'sandbox', 'second');
  expect((await store.read(behind)).map(({ message }) => message)).toEqual(['second']);
  await store.close();
});

test('a page says where the next one begins, in both directions', async () => {
  const store = open(newDirectory());
  for (let count = 0; count < 25; count++) store.write('s', 'info', 'sandbox', `entry ${count}`);
  const everything = await store.read(all);
  const forward = [];
  for (let fromMs = 0; ;) {
    const page = await store.read({ ...all, fromMs, limit: 10 });
    forward.push(...page);
    if (page.length < 10) break;
    fromMs = (page.at(-1)?.timestampMs ?? 0) + 1;
  }
  expect(forward).toEqual(everything);
  const backward = [];
  for (let beforeMs = Number.MAX_SAFE_INTEGER; ;) {
    const page = await store.read({ ...all, backward: true, beforeMs, limit: 10 });
    backward.push(...page);
    if (page.length < 10) break;
    beforeMs = page.at(-1)?.timestampMs ?? 0;
  }
  expect(backward.reverse()).toEqual(everything);
  await store.close();
});

test('entries of seven days are answered, and none before', async () => {
  const store = open(newDirectory());
  const dayMs = 24 * 60 * 60_000;
  const said = (daysAgo: number) => say(store, 's', `${daysAgo}`, Date.now() - daysAgo * dayMs, 0);
  for (const daysAgo of [8, 7.01, 6.99, 1]) said(daysAgo);
  expect((await store.read(all)).map(({ message }) => message)).toEqual(['6.99', '1']);
  await store.close();
});

test('a page ends where it is full, also at the end of a file, and begins anywhere', async () => {
  const store = open(newDirectory());
  for (let count = 0; count < 4; count++) {
    say(store, 's', `${count} `);
    await store.read({ ...all, limit: 0 });
  }
  const numbers = async (wanted: object) =>
    (await store.read({ ...all, ...wanted })).map(({ message }) => Number.parseInt(message));
  const times = (await store.read(all)).map(({ timestampMs }) => timestampMs);
  expect(await numbers({ limit: 2 })).toEqual([0, 1]);
  expect(await numbers({ limit: 3, backward: true })).toEqual([3, 2, 1]);
  expect(await numbers({ fromMs: times[1], beforeMs: times[3] })).toEqual([1, 2]);
  expect(await numbers({ fromMs: (times[1] ?? 0) + 1, beforeMs: (times[3] ?? 0) + 1 })).toEqual([2, 3]);
  await store.close();
});

test('after 64 MiB of writes the excess is removed unasked', async () => {
  const directory = newDirectory();
  const store = openLogStore({ directory, bytesMax: 20 << 20, log: silentLog });
  const filled = () => readdirSync(directory).length;
  const fill = async (sandboxId: string) => {
    for (let file = 0; file < 8; file++) {
      say(store, sandboxId, 'much');
      await store.place(sandboxId);
    }
  };
  for (let number = 1; number <= 7; number++) await fill(`s${number}`);
  expect(filled()).toBe(7);
  for (const sandboxId of ['s8', 's9']) await fill(sandboxId);
  expect(filled()).toBeLessThan(5);
  await store.close();
});

test('entries that are neither too old nor too many stay when others have written much', async () => {
  const directory = newDirectory();
  const store = open(directory);
  say(store, 'quiet', 'kept', Date.now(), 0);
  await store.place('quiet');
  for (let file = 0; file < 66; file++) {
    say(store, `s${file % 9}`, 'much');
    await store.place(`s${file % 9}`);
  }
  const [first] = await store.read({ ...all, sandboxId: 'quiet' });
  expect(first?.message).toStartWith('kept');
  await store.close();
});

test('level and text choose', async () => {
  const store = open(newDirectory());
  for (const level of ['debug', 'info', 'warn', 'error'] as const)
    store.write('s', level, 'sandbox', `Said at ${level}`);
  const messages = async (wanted: object) => (await store.read({ ...all, ...wanted })).map(entry => entry.level);
  expect(await messages({ minimum: 'warn' })).toEqual(['warn', 'error']);
  expect(await messages({ search: 'said AT w' })).toEqual(['warn']);
  expect(await messages({ search: 'nothing' })).toEqual([]);
  store.write('s', 'info', 'network', 'denied: example.com:443');
  expect(await messages({ logger: 'network' })).toEqual(['info']);
  expect(await messages({ logger: 'network', minimum: 'warn' })).toEqual([]);
  expect(await messages({ limit: 0 })).toEqual([]);
  expect(await store.read({ ...all, sandboxId: 'unknown' })).toEqual([]);
  await store.close();
});

test('a line that a crash cut off takes no other with it', async () => {
  const directory = newDirectory();
  const store = open(directory);
  store.write('s', 'info', 'sandbox', 'whole');
  await store.close();
  const [segment = ''] = readdirSync(join(directory, 's'));
  appendFileSync(join(directory, 's', segment), '{"t":99,"l":1,"g":"sandbox","m":"cut o');
  const again = open(directory);
  again.write('s', 'info', 'sandbox', 'next');
  expect((await again.read(all)).map(entry => entry.message)).toEqual(['whole', 'next']);
  await again.close();
});

test('one sandbox has so much, all have so much, and the old goes', async () => {
  const directory = newDirectory();
  const store = open(directory);
  for (let round = 0; round < 12; round++) {
    for (let count = 0; count < 1000; count++) store.write('s', 'info', 'sandbox', `${round} ${'x'.repeat(1200)}`);
    await store.read({ ...all, limit: 0 });
  }
  const kept = readdirSync(join(directory, 's'));
  expect(kept.length).toBe(8);
  const newest = await store.read({ ...all, backward: true, limit: 1 });
  expect(newest[0]?.message).toStartWith('11 ');
  await store.close();

  expect(await pruneSegments(directory, { oldestMs: 0, bytesMax: 3 << 20 })).toEqual([]);
  const left = readdirSync(join(directory, 's'));
  expect(left.length).toBeLessThan(4);
  expect(kept).toEqual(expect.arrayContaining(left));
  for (const name of left) utimesSync(join(directory, 's', name), 1, 1);
  expect(await pruneSegments(directory, { oldestMs: 10_000, bytesMax: 3 << 20 })).toEqual(['s']);
  expect(readdirSync(directory)).toEqual([]);
});

test('a sandbox that writes faster than the disk is bounded, and its log says so', async () => {
  const store = open(newDirectory());
  for (let count = 0; count < 3000; count++) store.write('s', 'info', 'sandbox', 'x');
  const [last] = await store.read({ ...all, backward: true, limit: 1 });
  expect(last?.message).toBe('1000 entries were dropped: there were too many at a time');
  await store.close();
});
