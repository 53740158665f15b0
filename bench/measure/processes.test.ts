import { expect, test } from 'bun:test';
import { platformOf, pssMiBOf, sumOf } from './processes.ts';

test('the memory of a platform is that of all its processes, and what has ended counts for nothing', async () => {
  await using part = Bun.spawn(['sleep', '60']);
  const own = platformOf(process.pid);
  expect(own).toContain(part.pid);
  expect(own).toContain(process.pid);
  expect(pssMiBOf(part.pid)).toBeGreaterThan(0);
  expect(sumOf([part.pid, 2 ** 30], pssMiBOf)).toBe(pssMiBOf(part.pid));
  part.kill();
  await part.exited;
  expect(platformOf(process.pid)).not.toContain(part.pid);
});
