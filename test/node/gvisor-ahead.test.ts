import { expect } from 'bun:test';
import { newUuid } from '../../src/base/id.ts';
import { findRunsc } from '../../src/node/drivers/gvisor/find-runsc.ts';
import { waitFor } from '../support/process.ts';
import { testUnless } from '../support/skip.ts';
import { runInSandbox } from './support/run-in-sandbox.ts';
import { startTestNode } from './support/test-node.ts';

const runsc = findRunsc(`${import.meta.dir}/../../dist/runsc`);

testUnless(runsc.found ? undefined : `no gVisor here: ${runsc.reason}`)(
  'on gVisor, a template that is asked for again waits as a sandbox that has started, and gets its name once',
  async () => {
    const it = await startTestNode({ driver: 'gvisor', poolSize: 4 });
    await using _ = { [Symbol.asyncDispose]: () => it.dispose() };
    const { protocol } = it.node;
    const counts = async () => (await protocol.usage()).pool?.restored;
    const create = (name: string) => protocol.create(it.request({ envVars: { NAME: name } }));
    const others = [await create('first'), await create('second')];
    const waits = (count: number) =>
      waitFor(`${count} sandboxes to wait`, async () => (await counts())?.ready === count);
    await waits(1);

    const taken = await create('taken');
    expect(await counts()).toMatchObject({ hits: 1, misses: 2, failures: 0 });
    const run = async (sandboxId: string, command: string) => (await runInSandbox(protocol, sandboxId, command)).stdout;
    const { sandboxId } = taken;
    expect(await run(sandboxId, 'echo $NAME; hostname; cat /etc/hostname; echo mine > /root/mine')).toBe(
      `taken\n${sandboxId}\n${sandboxId}\n`,
    );
    // Nobody in it has the rights that process 1 had.
    const capabilities = 'grep ^Cap /proc/1/status; grep -h ^Cap /proc/self/status; hostname other 2>&1; hostname';
    const ofAnother = await run(others[0]!.sandboxId, capabilities);
    expect(await run(sandboxId, capabilities)).toBe(ofAnother.replaceAll(others[0]!.sandboxId, sandboxId));

    await protocol.pause(taken, { memory: false });
    const resume = { nextExecutionId: newUuid(), memory: false, envVars: {}, accessToken: null };
    const resumed = await protocol.resume({ ...taken, ...resume, network: { internetAccess: true } });
    expect(await run(sandboxId, 'hostname; cat /root/mine')).toBe(`${sandboxId}\nmine\n`);
    await Promise.all([...others, resumed].map(sandbox => protocol.kill(sandbox)));
  },
  120_000,
);
