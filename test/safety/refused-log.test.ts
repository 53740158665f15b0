import { Database } from 'bun:sqlite';
import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LossyDisks } from '../proof/power/lossy-disk.ts';
import { waitFor } from '../support/process.ts';

const folder = mkdtempSync(join(tmpdir(), 'atoll-refused-'));
afterAll(() => rmSync(folder, { recursive: true }));

// The kernel considers data written that a disk has refused, and what SQLite keeps behind it is worthless.
test('what a database has answered is there, although the disk refused what was written before it', async () => {
  const { disk, fail } = await (await LossyDisks.make(folder)).failing();
  await using _ = disk;
  const path = join(disk.point, 'words.db');
  const writer = Bun.spawn([process.execPath, join(import.meta.dir, 'support/log-writer.ts'), path], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const lines = writer.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const keep = async (word: string) => {
    void writer.stdin.write(`${word}\n`);
    await writer.stdin.flush();
    return (await lines.read()).value?.trim();
  };
  try {
    expect((await lines.read()).value).toBe('ready\n');
    expect(await keep('before')).toBe('kept');
    fail({ refusedWrites: 100 });
    expect(await keep('refused')).toContain('EIO');
    fail({});
    // SQLite learns of it through its own descriptor, once.
    await waitFor('the disk to be well again', async () => (await keep('after')) === 'kept');
    expect(await keep('last')).toBe('kept');
    expect(disk.isReadOnly()).toBe(false);
  } finally {
    writer.kill('SIGKILL');
    await writer.exited;
  }
  // The kernel drops its cached files, and only the disk is left.
  await disk.repair();
  using database = new Database(path);
  const words = database.query<{ word: string }, []>('select word from words').all();
  expect(words.map(({ word }) => word)).toEqual(expect.arrayContaining(['before', 'after', 'last']));
}, 120_000);
