import { expect, test } from 'bun:test';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeAll } from './write-all.ts';

test('bytes are written at the file’s position, or at a given one', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-write-all-'));
  const path = join(folder, 'file');
  const file = openSync(path, 'w+');
  try {
    writeAll(file, Buffer.from('one '));
    writeAll(file, Buffer.from('two'));
    writeAll(file, Buffer.from('ONE'), 0);
    expect(readFileSync(path, 'utf8')).toBe('ONE two');
  } finally {
    closeSync(file);
    rmSync(folder, { recursive: true });
  }
});

test('a write that has room only in part is reported', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-write-all-'));
  try {
    const module = JSON.stringify(join(import.meta.dir, 'write-all.ts'));
    const program = `const { writeAll } = await import(${module});
      writeAll(require('fs').openSync(process.argv[1], 'w'), Buffer.from('x'.repeat(100_000)))`;
    // Writes stop beyond that many blocks, as on a full disk.
    const limited = [
      'sh',
      '-c',
      'ulimit -f 16; exec "$@"',
      'sh',
      process.execPath,
      '-e',
      program,
      join(folder, 'file'),
    ];
    expect(Bun.spawnSync(limited, { stderr: 'ignore' }).exitCode).not.toBe(0);
    expect(readFileSync(join(folder, 'file')).length).toBeGreaterThan(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
