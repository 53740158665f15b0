import { expect, test } from 'bun:test';
import { createWatch, stalledAfterMs } from './watch.ts';

/** Watches a process that runs a JavaScript program, with answers or without. */
async function watched(program: string, answers: boolean, forMs = Infinity): Promise<string[]> {
  const child = Bun.spawn([process.execPath, '-e', program], { stdio: ['ignore', 'ignore', 'ignore'] });
  const stalls: string[] = [];
  const noticed = Promise.withResolvers<void>();
  const watch = createWatch({
    pid: child.pid,
    ask: answered => void (answers && setTimeout(answered, 10)),
    onStall(reason) {
      stalls.push(reason);
      noticed.resolve();
    },
  });
  watch.start();
  await (forMs === Infinity ? noticed.promise : Promise.race([noticed.promise, Bun.sleep(forMs)]));
  watch.stop();
  child.kill('SIGKILL');
  await child.exited;
  return stalls;
}

test('a process that computes without an answer is noticed', async () => {
  const [reason = ''] = await watched('for (;;);', false);
  expect(reason).toMatch(/^no answer for \d+ ms, in which it computed for \d+ ms$/);
}, 60_000);

test('a process that answers is left alone, however busy it is, and one that only waits has more time', async () => {
  const longer = stalledAfterMs + 1_500;
  expect(
    await Promise.all([watched('for (;;);', true, longer), watched('setInterval(() => {}, 1000)', false, longer)]),
  ).toEqual([[], []]);
}, 30_000);
