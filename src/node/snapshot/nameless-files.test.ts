import { closeSync, mkdtempSync, openSync, rmSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { namelessBytes } from './nameless-files.ts';

test('files that are open and have no name count once, with what they take of the disk', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-nameless-'));
  const opened: number[] = [];
  const open = (name: string) => {
    const file = openSync(join(folder, name), 'a+');
    opened.push(file);
    return file;
  };
  try {
    const before = await namelessBytes([process.pid]);
    for (const name of ['named', 'deleted']) writeSync(open(name), Buffer.alloc(1 << 20, 1));
    open('deleted');
    unlinkSync(join(folder, 'deleted'));
    const after = await namelessBytes([process.pid, process.pid]);
    expect(after - before).toBeGreaterThanOrEqual(1 << 20);
    expect(after - before).toBeLessThan(2 << 20);
  } finally {
    for (const file of opened) closeSync(file);
    rmSync(folder, { recursive: true });
  }
});

test('processes that have ended have none', async () => {
  expect(await namelessBytes([2 ** 30])).toBe(0);
});
