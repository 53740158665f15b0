import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readIfThere } from '../../src/base/small-file.ts';
import { checkpointToPause } from '../../src/node/snapshot/checkpoint.ts';
import { forgetLater } from '../../src/node/snapshot/later-memory.ts';
import { muchMemory } from '../../src/node/snapshot/later-pages.ts';
import { openSnapshot } from '../../src/node/snapshot/restore.ts';
import { waitFor } from '../support/process.ts';
import { bringersLeft, bringersOf, type Bringers } from './support/bringers.ts';
import { startMachine, type Machine, type TestSandbox } from './support/machine.ts';
import { buildProgram } from './support/program.ts';

// What a sandbox can make the host's process take that brings its memory: support/memory-splitter.c.

const mebibytes = 128;
/** Of the program, once it splits its memory: the first one, and those of its source's `threads`. */
const threads = 1 + 16;
/** Its lists (64 MiB, `dataBytesMax` of native/snapshot-later.c), and itself. */
const memoryKibMax = 72 << 10;

let machine: Machine;
let program: string;
const sandboxes = new Set<TestSandbox>();

beforeAll(async () => {
  machine = await startMachine();
  program = buildProgram('memory-splitter');
}, 120_000);

afterEach(async () => {
  for (const sandbox of sandboxes) await machine.kill(sandbox);
  sandboxes.clear();
});

afterAll(async () => {
  await machine[Symbol.asyncDispose]();
}, 60_000);

async function startSplitter(): Promise<TestSandbox> {
  const sandbox = await machine.start(0);
  sandboxes.add(sandbox);
  await sandbox.run(`base64 -d > /root/memory-splitter <<< ${program}; chmod +x /root/memory-splitter`);
  await sandbox.run(`setsid /root/memory-splitter ${mebibytes} < /dev/null > /root/log 2>&1 &`);
  await waitFor('the program', async () => (await sandbox.run('cat /root/log')).includes('ready'));
  return sandbox;
}

/** Starts again from memory, while the bringer of memory stands still. */
async function restoreHeld(sandbox: TestSandbox): Promise<{ restored: TestSandbox } & Bringers> {
  const directory = join(machine.snapshots, 'splitter');
  const options = { directory, name: 'splitter', facts: {}, then: 'end' as const, onComplete: async () => {} };
  await checkpointToPause(machine.host, sandbox.source, options);
  await machine.release(sandbox);
  sandboxes.delete(sandbox);
  let found: Bringers | undefined;
  const snapshot = await openSnapshot(machine.host, directory);
  const restored = await machine.restore(snapshot, 1, sandbox.source.disk, muchMemory, {
    async onRestored() {
      found = await waitFor('who brings memory', () => bringersOf(machine.host.runDir)[0]);
      process.kill(found.bringer, 'SIGSTOP');
    },
  });
  sandboxes.add(restored);
  return { restored, ...(found as Bringers) };
}

const splitterIn = (sandbox: TestSandbox) =>
  sandbox.source.group.processes().find(pid => readIfThere(`/proc/${pid}/comm`) === 'memory-splitter') as number;

const mostKib = (pid: number) => Number(/^VmHWM:\s+(\d+)/m.exec(readIfThere(`/proc/${pid}/status`) ?? '')?.[1] ?? 0);

test('a sandbox that makes the lists of who brings its memory too long ends, and the host keeps its memory', async () => {
  const { restored, bringer } = await restoreHeld(await startSplitter());
  const splitter = splitterIn(restored);
  process.kill(splitter, 'SIGUSR1');
  // Otherwise all memory may have come before the program has cut any.
  await waitFor('its threads', () => readdirSync(`/proc/${splitter}/task`).length === threads);
  process.kill(bringer, 'SIGCONT');
  let most = 0;
  await waitFor('its end', () => {
    most = Math.max(most, mostKib(bringer));
    return most > memoryKibMax || bringersLeft(machine.host.runDir) === 0;
  });
  // It has ended by itself.
  await machine.release(restored);
  sandboxes.delete(restored);
  expect(most).toBeLessThanOrEqual(memoryKibMax);
  expect(forgetLater(machine.host.runDir, restored.slot.name)).toBe('memory: Cannot allocate memory');
}, 120_000);
