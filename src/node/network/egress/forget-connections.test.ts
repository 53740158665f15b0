import { expect, test } from 'bun:test';
import { silentLog } from '../../../base/telemetry/log.ts';
import { slotOf } from '../../layout.ts';
import { createForgottenConnections } from './forget-connections.ts';

const [first, second] = [slotOf(0, 1), slotOf(0, 2)];

/** Records attempts, each with its addresses; those whose number is in `failing` fail. */
function forgettingWith(failing: number[], ipv6 = false) {
  const attempts: string[][] = [];
  const forgotten = createForgottenConnections(silentLog, ipv6, async (_, gone) => {
    attempts.push([...gone]);
    await Bun.sleep(10);
    if (failing.includes(attempts.length)) throw new Error('the kernel refuses');
  });
  return { attempts, forgotten };
}

test('a slot whose connections could not be forgotten is not free until they are', async () => {
  const { attempts, forgotten } = forgettingWith([1]);
  forgotten.leave(first);
  const failure = forgotten.free(first).then(
    () => 'free',
    () => 'failed',
  );
  expect(await failure).toBe('failed');
  await forgotten.free(second);
  await forgotten.free(first);
  expect(attempts).toEqual([[first.address], [first.address]]);
  await forgotten.stop();
  expect(attempts).toHaveLength(2);
});

test('connections that could not be forgotten are tried again unasked', async () => {
  const { attempts, forgotten } = forgettingWith([1], true);
  forgotten.leave(first);
  while (attempts.length < 2) await Bun.sleep(20);
  expect(attempts[1]).toEqual([first.address, first.addressV6]);
  await forgotten.stop();
});

test('a failed attempt takes nothing from a slot that a later one has made free', async () => {
  const { attempts, forgotten } = forgettingWith([1]);
  forgotten.leave(first);
  const failed = forgotten.free(first).catch(() => {});
  forgotten.leave(first);
  await Promise.all([failed, forgotten.free(first)]);
  await forgotten.stop();
  expect(attempts).toEqual([[first.address], [first.address]]);
});

test('the end forgets what waits, once', async () => {
  const { attempts, forgotten } = forgettingWith([1, 2]);
  forgotten.leave(first);
  forgotten.leave(second);
  await forgotten.stop();
  // A window in which no further attempt may come.
  await Bun.sleep(400);
  expect(attempts).toEqual([[first.address, second.address]]);
});
