import { expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeSmallFile } from './small-file.ts';

test('a file is rewritten whole, and one that there is room for in part alone is an error', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-agent-file-'));
  try {
    const path = join(folder, 'etc', 'hosts');
    writeSmallFile(path, 'a longer text – than the next');
    writeSmallFile(path, 'next – ü');
    expect(readFileSync(path, 'utf8')).toBe('next – ü');
    const module = JSON.stringify(join(import.meta.dir, 'small-file.ts'));
    const program = `(await import(${module})).writeSmallFile(process.argv[1], 'x'.repeat(100_000))`;
    // A write stops after this many blocks, as on a full disk.
    const limited = ['sh', '-c', 'ulimit -f 16; exec "$@"', 'sh', process.execPath, '-e', program, path];
    expect(Bun.spawnSync(limited, { stderr: 'ignore' }).exitCode).not.toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
