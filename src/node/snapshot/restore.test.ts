import { expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { forgetRestores } from './restore.ts';

test('after a crash, the marks of restores are forgotten and nothing else', () => {
  const runDir = mkdtempSync(join(tmpdir(), 'atoll-restores-'));
  try {
    for (const name of ['restore-s1.conf', 'restore-s2.conf', 'restore-s1.log', 'dump-s1.conf', 'helper.sock'])
      writeFileSync(join(runDir, name), '');
    forgetRestores(runDir);
    expect(readdirSync(runDir).sort()).toEqual(['dump-s1.conf', 'helper.sock', 'restore-s1.log']);
  } finally {
    rmSync(runDir, { recursive: true });
  }
});
