import { expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { commitOf } from './commit.ts';

const commit = 'c0ffee'.repeat(6) + 'c0ff';

test('the commit of a checkout is found wherever git keeps it, and that of a release', () => {
  const root = mkdtempSync(join(tmpdir(), 'atoll-commit-'));
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  try {
    expect(commitOf(join(root, 'none'))).toBe('');
    write('detached/.git/HEAD', `${commit}\n`);
    write('loose/.git/HEAD', 'ref: refs/heads/main\n');
    write('loose/.git/refs/heads/main', `${commit}\n`);
    write('packed/.git/HEAD', 'ref: refs/heads/main\n');
    write('packed/.git/packed-refs', `# pack-refs\n${'0'.repeat(40)} refs/heads/not-main\n${commit} refs/heads/main\n`);
    write('worktree/.git', 'gitdir: ../loose/.git/worktrees/w\n');
    write('loose/.git/worktrees/w/HEAD', 'ref: refs/heads/main\n');
    write('loose/.git/worktrees/w/commondir', '../..\n');
    write('release/commit', `${commit}\n`);
    for (const name of ['detached', 'loose', 'packed', 'worktree', 'release'])
      expect({ name, commit: commitOf(join(root, name)) }).toEqual({ name, commit });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
