import { expect, test } from 'bun:test';
import { detectCgroups } from '../../src/node/cgroup/cgroup.ts';
import { waitFor } from '../support/process.ts';
import { runInSandbox } from './support/run-in-sandbox.ts';
import { startTestNode } from './support/test-node.ts';

/** A disk's pace: at it, what a sandbox has in memory takes ten minutes to be on the disk. */
const writtenPerSecond = 1 << 17;
const writer = 'while :; do dd if=/dev/zero of=/fill bs=1M count=200 conv=notrunc; sync -f /fill; done';
/** Begun at the pace: as long as it waits for the disk, no signal ends it. */
const held = 'dd if=/dev/zero of=/more bs=1M count=32; : > /written; exec sync -f /more';

test('a kill does not wait for the pace at which what was written goes to the disk', async () => {
  const it = await startTestNode({ diskWriteBytesPerSecond: writtenPerSecond });
  await using _ = { [Symbol.asyncDispose]: () => it.dispose() };
  const { protocol, installation } = it.node;
  const limited = () => detectCgroups().limitedDevices(`/atoll${installation}`);
  const before = new Set(limited());
  const sandbox = await protocol.create(it.request());
  const run = async (command: string) => (await runInSandbox(protocol, sandbox.sandboxId, command)).stdout;
  const begin = (script: string) => run(`(setsid sh -c '${script}' > /dev/null 2>&1 < /dev/null &)`);
  await begin(writer);
  await waitFor('its disk to have a pace', () => limited().some(device => !before.has(device)), 60_000);
  await begin(held);
  const state = '[ -e /written ] && cat /proc/$(pgrep -nx sync)/status';
  await waitFor('it to wait for the disk', async () => /^State:\tD/m.test(await run(state)), 60_000);
  await protocol.kill(sandbox);
  expect(await protocol.list()).toEqual([]);
}, 120_000);
