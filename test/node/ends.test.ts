import { expect, jest, test } from 'bun:test';
import type { CreateSandbox, OwnEnd } from '../../src/protocol/node.ts';
import { slotOf, type Slot } from '../../src/node/layout.ts';
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

/** A host on which the named steps fail, once for each time that a name is given. */
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

test('however many kills have failed, one try follows them', async () => {
  jest.useFakeTimers();
  try {
    let tries = 0;
    const host = createFaultyHost(
      name => (name === 'end' && ++tries < 9 ? 'fails' : 'none'),
      () => 0,
    );
    await createSandbox(host.parts, request);
    for (const _ of [1, 2, 3]) await expect(killSandbox(host.parts, target)).rejects.toThrow('end failed');
    for (const made of [4, 5]) {
      jest.advanceTimersByTime(1_000);
      for (let turn = 0; turn < 50; turn++) await Promise.resolve();
      expect(tries).toBe(made);
    }
  } finally {
    jest.useRealTimers();
  }
});

test('a kill of another execution, or of one that is not here, ends nothing', async () => {
  const host = failing();
  await createSandbox(host.parts, request);
  await killSandbox(host.parts, { sandboxId, executionId: 'another' });
  await killSandbox(host.parts, { sandboxId: 'b', executionId: 'e1' });
  expect([host.sandboxes.get(sandboxId)?.kind, host.alive().length]).toEqual(['running', 1]);
});

/** A host that records the order in which it does what must be ordered, and what it writes into the sandbox's log. */
function recording(outOfMemoryKills = 0) {
  const host = failing();
  const happened: string[] = [];
  const note = (text: string) => async () => void happened.push(text);
  const { end } = host.parts.processControl;
  const parts: typeof host.parts = {
    ...host.parts,
    logs: {
      ...{ follow: () => {}, catchUp: note('caught up'), leave: note('left') },
      write: (_, level, __, text, fields) => void happened.push(`${level} ${text} (${fields?.['reason'] ?? ''})`),
    },
    processControl: {
      ...host.parts.processControl,
      async end(processes) {
        happened.push('processes end');
        await end(processes);
      },
    },
    async startNew(request) {
      const started = await host.parts.startNew(request);
      const { killFrozen } = started.processes.driver;
      const driver = {
        ...started.processes.driver,
        outOfMemoryKills: () => outOfMemoryKills,
        killFrozen(slot: Slot) {
          happened.push('frozen ones end');
          killFrozen(slot);
        },
      };
      return { ...started, processes: Object.assign(started.processes, { driver }) };
    },
  };
  return {
    ...host,
    parts,
    async created() {
      await createSandbox(parts, request);
      happened.length = 0;
    },
    took: () => happened.splice(0),
  };
}

test('what the agent of a sandbox has to report is in its log before it ends, and nobody holds its network', async () => {
  const host = recording();
  for (const [reason, text] of [
    ['asked', 'info killed (asked)'],
    ['timed_out', 'info ended: its time was over (timed_out)'],
  ] as const) {
    await host.created();
    await killSandbox(host.parts, target, reason);
    expect(host.took()).toEqual(['caught up', 'left', 'processes end', text]);
  }
  // The agents of paused ones have been left.
  for (const memory of [true, false]) {
    await host.created();
    await pauseSandbox(host.parts, target, { memory });
    expect(host.took()).toEqual(
      memory
        ? ['left', 'info paused with its memory ()']
        : ['caught up', 'left', 'info paused with its files ()', 'frozen ones end'],
    );
    await killSandbox(host.parts, target);
    expect(host.took()).toEqual([...(memory ? ['frozen ones end', 'processes end'] : []), 'info killed (asked)']);
  }
});

test.each<[number, OwnEnd, string]>([
  [0, 'init_exited', 'error ended by itself: its first process ended (init_exited)'],
  [1, 'out_of_memory', 'error ended: its memory was used up (out_of_memory)'],
])('of a sandbox that ended by itself, after %i kills for memory, it is known why', async (kills, reason, text) => {
  const host = recording(kills);
  await host.created();
  host.alive()[0]?.die();
  await waitFor('the end to be reported', () => host.incidents.length > 0);
  expect(host.incidents).toEqual([{ ...target, reason }]);
  expect(host.took()).toEqual(['caught up', 'left', 'processes end', text]);
});

test('a kill of a sandbox that can not be taken over frees what it holds, and says so where it can not', async () => {
  const host = failing('empty', 'remove');
  const record = await createSandbox(host.parts, request);
  const running = host.sandboxes.get(sandboxId);
  if (running?.kind !== 'running') throw new Error('it does not run');
  // As the node finds it when it restarts.
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
    // Even without room on its disk, the host has its memory again.
    expect([host.alive().length, host.sandboxes.get(sandboxId)?.kind]).toEqual([0, 'paused']);
    if (during === 'hangs') expect(noted()).toMatchObject({ state: 'paused', frozen: null });
    await killSandbox(host.parts, target);
  }
});
