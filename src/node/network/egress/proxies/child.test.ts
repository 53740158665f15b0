import { expect, test } from 'bun:test';
import { spawnProxy } from './child.ts';

test('nothing is sent to a killed proxy, even before its end is noticed', async () => {
  for (let round = 0; round < 5; round++) {
    const child = spawnProxy({ onMessage() {}, onExit() {} });
    let hasEnded = false;
    void child.exited.then(() => (hasEnded = true));
    child.kill('SIGKILL');
    // The ends of the process and of its channel are noticed one after the other.
    while (!hasEnded) {
      child.send({ kind: 'ping', id: 1 });
      await new Promise(resolve => void setImmediate(resolve));
    }
    child.send({ kind: 'ping', id: 1 });
    child.disconnect();
    expect(await child.exited).toBe(137);
  }
});
