import { afterEach, beforeEach, expect, test } from 'bun:test';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { listDirectory } from './list-directory.ts';

let folder = '';
beforeEach(() => void (folder = mkdtempSync('/dev/shm/atoll-volume-list-')));
afterEach(() => rmSync(folder, { recursive: true }));

const at = (name: string) => join(folder, name);
const error = (message: string) =>
  expect.objectContaining({ code: 'invalid', message: expect.stringContaining(message) }) as unknown;

test('an answer has ten thousand entries at most, those below others counted', async () => {
  const add = (directory: string, from: number, to: number) => {
    mkdirSync(at(directory), { recursive: true });
    for (let number = from; number < to; number++) closeSync(openSync(at(`${directory}/${number}`), 'w'));
  };
  const refused = error('holds more than 10000 entries');
  add('many', 0, 9_999);
  expect(await listDirectory(folder, '', 2)).toHaveLength(10_000);
  // One sorts before the others, and one behind them.
  for (const other of ['few', 'still']) {
    mkdirSync(at(other));
    await expect(listDirectory(folder, '', 2)).rejects.toEqual(refused);
    rmSync(at(other), { recursive: true });
  }
  add('many', 9_999, 10_001);
  await expect(listDirectory(folder, 'many', 1)).rejects.toEqual(refused);
});

test('an answer has eight MiB of names and targets at most', async () => {
  mkdirSync(at('links'));
  const target = 'x'.repeat(4_000);
  const fits = Math.floor((8 << 20) / (4_000 + '/links/0000'.length));
  const link = (number: number) => symlinkSync(target, at(`links/${String(number).padStart(4, '0')}`));
  for (let number = 0; number < fits; number++) link(number);
  expect(await listDirectory(folder, 'links', 1)).toHaveLength(fits);
  link(fits);
  await expect(listDirectory(folder, 'links', 1)).rejects.toEqual(error('8 MiB of names'));
});
