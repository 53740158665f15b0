import { expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runInSandbox } from './support/run-in-sandbox.ts';
import { startTestNode } from './support/test-node.ts';

const root = join(import.meta.dir, '../..');

test('a helper that does without what Linux 6.12 and 6.13 brought gives sandboxes the same root', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'atoll-older-'));
  const helperBinary = join(dir, 'helper');
  writeFileSync(helperBinary, `#!/bin/sh\nexec '${join(root, 'dist/helper')}' "$1" --older-kernel\n`, { mode: 0o755 });
  // What set-up makes beside the helper must be found beside it.
  symlinkSync(join(root, 'dist/seccomp'), join(dir, 'seccomp'));
  const it = await startTestNode({ helperBinary });
  try {
    const [first, second] = await Promise.all([
      it.node.protocol.create(it.request()),
      it.node.protocol.create(it.request()),
    ]);
    const run = (id: string, command: string) => runInSandbox(it.node.protocol, id, command);
    expect(
      (
        await run(
          first.sandboxId,
          'id -u; mv /usr/share/doc /usr/share/doc2 && touch /usr/bin/new && ls -l /usr/bin/new | cut -c1-10',
        )
      ).stdout,
    ).toBe('0\n-rw-r--r--\n');
    expect((await run(first.sandboxId, 'stat -c %U /etc/passwd /home/user')).stdout).toBe('root\nuser\n');
    expect((await run(second.sandboxId, 'ls /usr/bin/new')).exitCode).not.toBe(0);
    const mounts = readFileSync(`/proc/${it.node.helperPid}/mountinfo`, 'utf8');
    expect(mounts).toMatch(/ - erofs \/dev\/loop\d+ /);
    expect(mounts).not.toMatch(/ - overlay (?!agent )/);
    await Promise.all([it.node.protocol.kill(first), it.node.protocol.kill(second)]);
  } finally {
    await it.dispose();
    rmSync(dir, { recursive: true });
  }
}, 60_000);
