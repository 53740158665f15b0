import { expect, test } from 'bun:test';
import { detectCgroups } from '../../src/node/cgroup/cgroup.ts';
import { waitFor } from '../support/process.ts';
import { runInSandbox } from './support/run-in-sandbox.ts';
import { startTestNode } from './support/test-node.ts';

/** A disk's pace at which a sandbox's memory takes ten minutes to reach the disk. */
const writtenPerSecond = 1 << 17;
const writer = 'while :; do dd if=/dev/zero of=/fill bs=1M count=200 conv=notrunc; sync -f /fill; done';
/**
 * Whatever waits this long is waiting for the pace: under version 1 a sync, which no signal ends; under version 2 dd or
 * a sync.
 */
const heldMs = 3_000;

test('a kill does not wait for the pace at which what was written goes to the disk', async () => {
  const it = await startTestNode({ diskWriteBytesPerSecond: writtenPerSecond });
  await using _ = { [Symbol.asyncDispose]: () => it.dispose() };
  const { protocol, installation } = it.node;
  const limited = () => detectCgroups().limitedDevices(`/atoll${installation}`);
  const before = new Set(limited());
  const sandbox = await protocol.create(it.request());
  const run = async (command: string) => (await runInSandbox(protocol, sandbox.sandboxId, command)).stdout;
  await run(`(setsid sh -c '${writer}' > /dev/null 2>&1 < /dev/null &)`);
  await waitFor('its disk to have a pace', () => limited().some(device => !before.has(device)), 120_000);
  let waiting = { pid: '', since: 0 };
  const isHeld = async () => {
    const status = await run('cat /proc/$(pgrep -nx "dd|sync")/status');
    const pid = /^State:\tD/m.test(status) ? (/^Pid:\t(\d+)/m.exec(status)?.[1] ?? '') : '';
    if (pid !== waiting.pid) waiting = { pid, since: performance.now() };
    return pid !== '' && performance.now() - waiting.since > heldMs;
  };
  await waitFor('it to wait for the disk', isHeld, 60_000);
  await protocol.kill(sandbox);
  expect(await protocol.list()).toEqual([]);
}, 240_000);
