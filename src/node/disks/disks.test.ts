import { expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Helper } from '../native/helper.ts';
import { createDisks } from './disks.ts';

test('what a crash has left of mounts and of formatting is removed, and no disk is', () => {
  const dir = mkdtempSync(join(tmpdir(), 'atoll-disks-'));
  try {
    mkdirSync(join(dir, 'making-x1'));
    const lasting = ['empty-512-ab.img', 's0.img', 's12.img'];
    for (const name of ['snapshot-ab12.img', 'self-test.img', 'making-x1/image', ...lasting])
      writeFileSync(join(dir, name), '');
    createDisks({ helper: {} as Helper, dir, files: {} });
    expect(readdirSync(dir).sort()).toEqual(lasting);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
