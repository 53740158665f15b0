import { expect, test } from 'bun:test';
import { processesWith, runsWith } from './criu-processes.ts';

test('a process is recognized by its first arguments, and no more is read than CRIU’s arguments have', async () => {
  const [near, far] = [`near-${process.pid}`, `far-${process.pid}`];
  const long = Array.from({ length: 20 }, () => 'x'.repeat(100_000));
  const child = Bun.spawn(['sh', '-c', 'read _', near, ...long, far], { stdin: 'pipe' });
  try {
    expect([await runsWith(child.pid, near), await runsWith(child.pid, far)]).toEqual([true, false]);
    expect([await processesWith(near), await processesWith(far)]).toEqual([[child.pid], []]);
  } finally {
    child.kill();
    await child.exited;
  }
  expect(await runsWith(child.pid, near)).toBe(false);
});
