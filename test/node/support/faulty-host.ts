import { silentLog } from '../../../src/base/telemetry/log.ts';
import type { CreateSandbox, ResumeSandbox, SandboxIncident } from '../../../src/protocol/node.ts';
import type { Driver } from '../../../src/node/drivers/driver.ts';
import { slotOf } from '../../../src/node/layout.ts';
import type { NetworkNamespace } from '../../../src/node/native/netns.ts';
import type { KeepSource, KeepWhat } from '../../../src/node/sandbox/keep/keep-sandbox.ts';
import type { KillParts } from '../../../src/node/sandbox/lifecycle/end.ts';
import type { CreateParts } from '../../../src/node/sandbox/lifecycle/create.ts';
import type { ResumeParts } from '../../../src/node/sandbox/lifecycle/resume.ts';
import type { PauseParts } from '../../../src/node/sandbox/lifecycle/pause.ts';
import type { UpdateParts } from '../../../src/node/sandbox/lifecycle/update-network.ts';
import {
  pausedRecord,
  resumedRecord,
  type PausedRecord,
  type RunningRecord,
  type SandboxRecord,
} from '../../../src/node/sandbox/records/record.ts';
import type { Processes } from '../../../src/node/sandbox/slot/processes.ts';
import { Sandboxes } from '../../../src/node/sandbox/state/sandboxes.ts';

/** Fake processes: they run, are frozen or have ended. */
type FakeProcesses = Processes & { sandboxId: string; state: 'running' | 'frozen' | 'ended'; die(): void };

/** Everything that a lifecycle needs of a host, where each step may fail, hang or lose the processes. */
export type FaultyHost = {
  parts: CreateParts & ResumeParts & PauseParts & UpdateParts & KillParts;
  sandboxes: Sandboxes;
  /** Every started set of processes that has not ended. */
  alive(): FakeProcesses[];
  /** The records on the disk, by sandbox ID. */
  noted: Map<string, SandboxRecord>;
  /** Slots that are not free. */
  slotsUsed(): number;
  incidents: SandboxIncident[];
  /** Releases everything that hangs. */
  release(): void;
};

/** What happens to a step. */
export type Fault = 'none' | 'fails' | 'hangs' | 'hangs and fails' | 'processes die';

/** A host that asks `next` what happens to each step, and takes `ticks()` turns of the event loop for it. */
export function createFaultyHost(next: (step: string) => Fault, ticks: () => number): FaultyHost {
  const sandboxes = new Sandboxes();
  const noted = new Map<string, SandboxRecord>();
  const processes = new Set<FakeProcesses>();
  const slots = new Set<number>();
  const incidents: FaultyHost['incidents'] = [];
  let hanging: (() => void)[] = [];
  let slotNumber = 0;

  const step = async (name: string, involved?: FakeProcesses) => {
    for (let left = ticks(); left > 0; left--) await Promise.resolve();
    const fault = next(name);
    if (fault.startsWith('hangs')) await new Promise<void>(resolve => hanging.push(resolve));
    if (fault === 'processes die') involved?.die();
    if (fault === 'fails' || fault === 'hangs and fails') throw new Error(`${name} failed`);
  };
  const fakeOf = (wanted: Processes) => wanted as FakeProcesses;
  const start = (sandboxId: string): FakeProcesses => {
    const slot = slotOf(0, slotNumber++ % 1024);
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    slots.add(slot.number);
    const fake: FakeProcesses = {
      sandboxId,
      slot,
      driver: driverOf(() => fake),
      pid: 1,
      namespace: {} as NetworkNamespace,
      ended,
      state: 'running',
      die() {
        fake.state = 'ended';
        processes.delete(fake);
        resolve();
      },
    };
    processes.add(fake);
    return fake;
  };
  const release = (fake: FakeProcesses) => void (fake.die(), slots.delete(fake.slot.number));
  const place = { pid: 1, startTicks: 1 };

  const records = {
    async write(record: SandboxRecord) {
      await step('write');
      noted.set(record.sandboxId, record);
    },
    forget: (sandboxId: string) => void noted.delete(sandboxId),
    remove: async () => step('remove'),
  };

  const parts: FaultyHost['parts'] = {
    sandboxes,
    drivers: { keepersOf: () => [] },
    log: silentLog,
    logs: { write: () => {}, follow: () => {}, catchUp: async () => {}, leave: async () => {} },
    incidents: { report: exit => void incidents.push(exit) },
    frozenMs: 3_600_000,
    records,
    egress: { trusted: () => undefined, update: () => step('policy') },
    cleanups: {
      begin(_name, free) {
        const again = (): Promise<void> => free().catch(again);
        void again();
      },
    },
    slotHost: { empty: () => step('empty'), give: slot => void slots.delete(slot.number) },
    processControl: {
      async end(wanted) {
        await step('end', fakeOf(wanted));
        fakeOf(wanted).die();
      },
      async release(wanted) {
        await step('release', fakeOf(wanted)).catch(() => {});
        release(fakeOf(wanted));
      },
    },
    kept: { writeChecksums: () => step('checksums') },
    whyMemoryLost: async () => undefined,
    keepFilesOfEnded: () => Promise.reject(new Error('no memory comes later here')),
    admitNew: () => step('admit').then(() => new DisposableStack()),
    admitAgain: () => step('admit').then(() => new DisposableStack()),
    discardMemory: () => step('discard memory'),
    withdrawn: { require: () => {} },
    async startNew(request: CreateSandbox) {
      await step('start');
      const fake = start(request.sandboxId);
      const record = recordOf(request, fake);
      try {
        await step('configure', fake);
        await records.write(record);
        return { record, processes: fake };
      } catch (error) {
        release(fake);
        noted.delete(request.sandboxId);
        throw error;
      }
    },
    async keep({ record, processes: wanted }: KeepSource, { memory }: KeepWhat) {
      const fake = fakeOf(wanted);
      await step('keep', fake);
      if (fake.state === 'ended') throw new Error('the processes have ended');
      const frozen = memory ? { slot: record.slot, ...place } : null;
      const paused = pausedRecord(record, memory ? 'memory' : 'filesystem', frozen);
      fake.state = 'frozen';
      try {
        await records.write(paused);
      } catch (error) {
        fake.state = fake.state === 'frozen' ? 'running' : fake.state;
        throw error;
      }
      return paused;
    },
    async startAgain(record: PausedRecord, request: ResumeSandbox) {
      let fake: FakeProcesses | undefined;
      try {
        await step('start again');
        fake = start(record.sandboxId);
        const { nextExecutionId: executionId, network } = request;
        const running = resumedRecord(record, {
          ...place,
          slot: fake.slot.number,
          executionId,
          network,
          resumedFrom: 'filesystem',
        });
        await records.write(running);
        return { record: running, processes: fake };
      } catch (error) {
        if (fake) release(fake);
        noted.set(record.sandboxId, record);
        return { error, record };
      }
    },
    async thaw({ record, processes: wanted }, request: ResumeSandbox) {
      const fake = fakeOf(wanted);
      const { nextExecutionId: executionId, network } = request;
      try {
        await step('thaw', fake);
        if (fake.state === 'ended') throw new Error('the processes have ended');
        const slot = fake.slot.number;
        const running = resumedRecord(record, { ...place, slot, executionId, network, resumedFrom: 'memory' });
        await records.write(running);
        if ((fake.state as string) !== 'ended') fake.state = 'running';
        return { record: running, processes: fake };
      } catch (error) {
        noted.set(record.sandboxId, record);
        throw error;
      }
    },
  };

  return {
    parts,
    sandboxes,
    noted,
    incidents,
    alive: () => [...processes],
    slotsUsed: () => slots.size,
    release() {
      const waiting = hanging;
      hanging = [];
      for (const resolve of waiting) resolve();
    },
  };
}

/** The part of a driver that a lifecycle itself uses. */
function driverOf(fake: () => FakeProcesses): Driver {
  return {
    isFrozen: () => fake().state === 'frozen',
    killFrozen: () => fake().die(),
    outOfMemoryKills: () => 0,
  } as unknown as Driver;
}

function recordOf(request: CreateSandbox, { slot }: FakeProcesses): RunningRecord {
  const { sandboxId, executionId, resources, network, image } = request;
  return {
    state: 'running',
    sandboxId,
    executionId,
    controlToken: '',
    bootId: '',
    resources,
    network,
    image,
    agentDir: '',
    driver: 'crun',
    startedAtMs: 0,
    volumes: [],
    resumedFrom: null,
    slot: slot.number,
    pid: 1,
    startTicks: 1,
  };
}
