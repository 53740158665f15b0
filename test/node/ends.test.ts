import { expect, test } from 'bun:test';
import type { CreateSandbox } from '../../src/protocol/node.ts';
import { slotOf } from '../../src/node/layout.ts';
import { createSandbox } from '../../src/node/sandbox/lifecycle/create.ts';
import { killSandbox } from '../../src/node/sandbox/lifecycle/end.ts';
import { dropAllFrozen } from '../../src/node/sandbox/lifecycle/frozen.ts';
import { pauseSandbox } from '../../src/node/sandbox/lifecycle/pause.ts';
import type { Unreadable } from '../../src/node/sandbox/state/sandbox-state.ts';
import { waitFor } from '../support/process.ts';
import { createFaultyHost, type Fault } from './support/faulty-host.ts';

const sandboxId = 'a';
const request: CreateSandbox = {
  sandboxId,
  executionId: 'e1',
  image: { templateId: 't', buildId: 'b', layers: [], defaultUser: 'user', defaultWorkdir: '', buildEnv: {} },
  resources: { cpuCount: 1, memoryMiB: 1, diskMiB: 1 },
  network: { internetAccess: true },
  envVars: {},
  accessToken: null,
};
const target = { sandboxId, executionId: 'e1' };

/** A host on which the steps of these names fail, once for each time that they are named. */
function failing(...names: string[]) {
  const left = [...names];
  return createFaultyHost(
    name => {
      const at = left.indexOf(name);
      if (at < 0) return 'none';
      left.splice(at, 1);
      return 'fails';
    },
    () => 0,
  );
}

test('an end that failed is tried again until the sandbox is gone, though nobody asks again', async () => {
  const host = failing('end', 'end', 'empty');
  await createSandbox(host.parts, request);
  await expect(killSandbox(host.parts, target)).rejects.toThrow('end failed');
  expect(host.sandboxes.get(sandboxId)?.kind).toBe('ending');
  await waitFor('the sandbox to be gone', () => host.sandboxes.get(sandboxId) === undefined && host.slotsUsed() === 0);
  expect([host.alive().length, host.noted.size]).toEqual([0, 0]);
});

test('so is the end of one whose processes have ended by themselves', async () => {
  const host = failing('end');
  await createSandbox(host.parts, request);
  host.alive()[0]?.die();
  await waitFor('the sandbox to be gone', () => host.sandboxes.get(sandboxId) === undefined && host.slotsUsed() === 0);
  expect(host.incidents).toMatchObject([target]);
});

test('a kill of a sandbox that can not be taken over frees what it holds, and says so where it can not', async () => {
  const host = failing('empty', 'remove');
  const record = await createSandbox(host.parts, request);
  const running = host.sandboxes.get(sandboxId);
  if (running?.kind !== 'running') throw new Error('it does not run');
  // As the node finds it when it starts again.
  await host.sandboxes.inTurn(sandboxId, async () =>
    host.sandboxes.remove(host.sandboxes.transition(running, { ...running, kind: 'ending' })),
  );
  const slot = slotOf(0, record.slot);
  host.sandboxes.add<Unreadable>({ kind: 'unreadable', sandboxId, sinceMs: 0, reason: 'it hangs', slot, record });
  await killSandbox(host.parts, { sandboxId, executionId: 'another' });
  expect([host.sandboxes.get(sandboxId)?.kind, host.slotsUsed(), host.noted.size]).toEqual(['unreadable', 1, 1]);
  for (const failed of ['empty failed', 'remove failed']) {
    await expect(killSandbox(host.parts, target)).rejects.toThrow(failed);
    // Nobody else gets its slot before all of it is gone.
    expect([host.sandboxes.get(sandboxId)?.kind, host.slotsUsed()]).toEqual(['unreadable', 1]);
  }
  await killSandbox(host.parts, target);
  expect([host.sandboxes.get(sandboxId), host.slotsUsed(), host.noted.size]).toEqual([undefined, 0, 0]);
});

test('the processes of a paused sandbox are there until it is recorded that they are not', async () => {
  let fault: Fault = 'none';
  const host = createFaultyHost(
    name => (name === 'write' ? fault : 'none'),
    () => 0,
  );
  const noted = () => host.noted.get(sandboxId);
  for (fault of ['hangs', 'hangs and fails'] as const) {
    const during = fault;
    fault = 'none';
    await createSandbox(host.parts, request);
    await pauseSandbox(host.parts, target, { memory: true });
    fault = during;
    const dropped = dropAllFrozen(host.parts);
    await Bun.sleep(1);
    expect(host.alive().map(({ state }) => state)).toEqual(['frozen']);
    host.release();
    await dropped;
    fault = 'none';
    // Without room on its disk too, the host has its memory again.
    expect([host.alive().length, host.sandboxes.get(sandboxId)?.kind]).toEqual([0, 'paused']);
    if (during === 'hangs') expect(noted()).toMatchObject({ state: 'paused', frozen: null });
    await killSandbox(host.parts, target);
  }
});
