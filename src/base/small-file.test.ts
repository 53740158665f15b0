import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readEndIfThere, readIfThere, readOrMake, writeWhole } from './small-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'atoll-small-file-'));
afterAll(() => rmSync(folder, { recursive: true }));

test('a missing file has no text, and an unreadable one is an error', () => {
  expect(readIfThere(join(folder, 'none'))).toBeUndefined();
  expect(() => readIfThere(folder)).toThrow('EISDIR');
});

test('of a long file only the end is read', () => {
  const path = join(folder, 'long');
  writeFileSync(path, 'begin middle end\n');
  expect([readEndIfThere(path, 5), readEndIfThere(path, 100), readEndIfThere(join(folder, 'none'), 5)]).toEqual([
    'end',
    'begin middle end',
    undefined,
  ]);
  rmSync(path);
});

test('a file is replaced as a whole, and only its owner can read it', () => {
  const path = join(folder, 'whole');
  writeFileSync(path, 'a longer text than the next', { mode: 0o644 });
  writeWhole(path, 'next\n');
  expect(readFileSync(path, 'utf8')).toBe('next\n');
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('a file is made once, even if another process makes it meanwhile', () => {
  const path = join(folder, 'made');
  expect(readOrMake(path, () => 'first')).toBe('first');
  expect(readOrMake(path, () => 'second')).toBe('first');
  const raced = join(folder, 'raced');
  const make = () => {
    writeFileSync(raced, 'theirs');
    return 'ours';
  };
  expect(readOrMake(raced, make)).toBe('theirs');
  expect(readdirSync(folder).toSorted()).toEqual(['made', 'raced', 'whole']);
});

/** Runs an expression with no room for what it writes to `path`. */
function withoutRoom(expression: string, path: string): void {
  // Writes stop beyond that many blocks, as on a full disk.
  const module = JSON.stringify(join(import.meta.dir, 'small-file.ts'));
  const program = `const { writeWhole, readOrMake } = await import(${module});
    const [path, text] = [process.argv[1], 'x'.repeat(100_000)];
    ${expression}`;
  const limited = ['sh', '-c', 'ulimit -f 16; exec "$@"', 'sh', process.execPath, '-e', program, path];
  expect(Bun.spawnSync(limited, { stderr: 'ignore' }).exitCode).not.toBe(0);
}

test('if there is no room for a file, the earlier one stays', () => {
  const path = join(folder, 'full');
  writeWhole(path, 'before');
  withoutRoom('writeWhole(path, text)', path);
  expect(readFileSync(path, 'utf8')).toBe('before');
});

test('a file that can not be made leaves nothing, and is made later', () => {
  const own = mkdtempSync(join(folder, 'own-'));
  const path = join(own, 'made');
  withoutRoom('readOrMake(path, () => text)', path);
  expect(readdirSync(own)).toEqual([]);
  expect(readOrMake(path, () => 'later')).toBe('later');
  expect(readdirSync(own)).toEqual(['made']);
});
