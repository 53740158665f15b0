import { expect, test } from 'bun:test';
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pruneGone } from './history.ts';

test('old samples of sandboxes that are gone are removed, those of sandboxes that run or are paused never', () => {
  const dir = mkdtempSync(join(tmpdir(), 'atoll-history-'));
  try {
    for (const name of ['running', 'running.old', 'paused', 'oldgone', 'oldgone.old', 'newgone']) {
      writeFileSync(join(dir, name), '');
      if (name !== 'newgone') utimesSync(join(dir, name), 1000, 1000);
    }
    pruneGone(dir, sandboxId => sandboxId === 'running' || sandboxId === 'paused', 2_000_000);
    expect(readdirSync(dir).sort()).toEqual(['newgone', 'paused', 'running', 'running.old']);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
