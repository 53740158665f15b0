import { expect, test } from 'bun:test';
import { processesWith, runsWith } from './criu-processes.ts';

test('a process is recognized by its first arguments, and no more is read than CRIU’s arguments have', async () => {
  const [near, far] = [`near-${process.pid}`, `far-${process.pid}`];
  const long = Array.from({ length: 20 }, () => 'x'.repeat(100_000));
  const argv = ['sh', '-c', 'echo there; read _', near, ...long, far];
  const child = Bun.spawn(argv, { stdin: 'pipe', stdout: 'pipe' });
  try {
    // Its arguments are there a moment later than it is.
    await child.stdout.getReader().read();
    expect([await runsWith(child.pid, near), await runsWith(child.pid, far)]).toEqual([true, false]);
    expect([await processesWith(near), await processesWith(far)]).toEqual([[child.pid], []]);
  } finally {
    child.kill();
    await child.exited;
  }
  expect(await runsWith(child.pid, near)).toBe(false);
});
