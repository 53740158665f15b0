import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere } from '../../src/base/if-there.ts';
import { checkpointToPause } from '../../src/node/snapshot/checkpoint.ts';
import { forgetLater } from '../../src/node/snapshot/later-memory.ts';
import { anyMemory, muchMemory, type LaterMeasure } from '../../src/node/snapshot/later-pages.ts';
import { openSnapshot } from '../../src/node/snapshot/restore.ts';
import { waitFor } from '../support/process.ts';
import { bringersOf, plansOf, type Bringers } from './support/bringers.ts';
import { resources, startMachine, type Machine, type TestSandbox } from './support/machine.ts';
import { buildProgram } from './support/program.ts';

// Programs that know what each page of their memory holds, and play with it while it arrives: support/memory-player.c.
// A seed decides what each does, and when it is paused. How this interleaves with the arriving memory is left to the
// machine.

const seeds = Number(process.env['LATER_SEEDS'] ?? 3);
const first = Number(process.env['LATER_SEED'] ?? 1);
/** Pauses of each. */
const rounds = 3;

let machine: Machine;
let program: string;
const sandboxes = new Set<TestSandbox>();

beforeAll(async () => {
  machine = await startMachine();
  program = buildProgram('memory-player');
}, 120_000);

afterEach(async () => {
  for (const sandbox of sandboxes) await machine.kill(sandbox);
  sandboxes.clear();
});

afterAll(async () => {
  await machine[Symbol.asyncDispose]();
}, 60_000);

const tell = async (sandbox: TestSandbox, word: string) =>
  (await sandbox.run(`exec 3<> /dev/tcp/127.0.0.1/7000; echo ${word} >&3; cat <&3`)).trim();

async function startPlayer(sandbox: TestSandbox, seed: number): Promise<void> {
  const command = `setsid /root/memory-player ${seed} < /dev/null > /root/player.log 2>&1`;
  await sandbox.run(`${command} & echo $! > /root/player.pid`);
  await waitFor('the player', () => tell(sandbox, 'rest').catch(() => undefined));
}

async function startSandbox(): Promise<TestSandbox> {
  const sandbox = await machine.start(0);
  sandboxes.add(sandbox);
  await sandbox.run(`base64 -d > /root/memory-player <<< ${program}; chmod +x /root/memory-player`);
  return sandbox;
}

async function pause(sandbox: TestSandbox): Promise<string> {
  const directory = join(machine.snapshots, `player-${Math.random()}`);
  const options = { directory, name: 'player', facts: {}, then: 'end' as const, onComplete: async () => {} };
  await checkpointToPause(machine.host, sandbox.source, options);
  await machine.release(sandbox);
  sandboxes.delete(sandbox);
  return directory;
}

/** Makes the bringer of memory stand still before the first process runs. */
async function restore(sandbox: TestSandbox, directory: string, measure: LaterMeasure) {
  let found: Bringers | undefined;
  const slot = (sandbox.slot.number + 1) % 10;
  const snapshot = await openSnapshot(machine.host, directory);
  const restored = await machine.restore(snapshot, slot, sandbox.source.disk, measure, {
    async onRestored() {
      if (!comes()) return;
      found = await waitFor('who brings memory', () => bringersOf(machine.host.runDir)[0]);
      process.kill(found.bringer, 'SIGSTOP');
    },
  });
  sandboxes.add(restored);
  rmSync(directory, { recursive: true });
  return { restored, bringer: found?.bringer };
}

function randomOf(seed: number) {
  let state = seed * 2654435761 + 1;
  return (end: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * end);
  };
}

const comes = () => plansOf(machine.host.runDir).length > 0;

/** Makes it stand still now and then: much happens between two of its steps. */
async function disturb(bringer: number | undefined, random: (end: number) => number): Promise<void> {
  for (let times = random(40); ; times--) {
    if (bringer === undefined || !comes()) return;
    ifThere(() => process.kill(bringer, 'SIGCONT'), undefined);
    if (times <= 0) return;
    await Bun.sleep(random(4));
    ifThere(() => process.kill(bringer, 'SIGSTOP'), undefined);
    await Bun.sleep(random(25));
  }
}

const measures: LaterMeasure[] = [muchMemory, { sandboxBytes: 1, pieceBytes: 64 << 10 }, anyMemory];

type Round = { restored: TestSandbox; cameLater: boolean };

async function playRound(sandbox: TestSandbox, random: (end: number) => number): Promise<Round> {
  await tell(sandbox, 'go');
  await Bun.sleep(random(100));
  if (random(3)) await tell(sandbox, 'rest');
  const measure = measures[random(3)] as LaterMeasure;
  const { restored, bringer } = await restore(sandbox, await pause(sandbox), measure);
  const [went] = await Promise.all([tell(restored, 'go').catch(error => `${error}`), disturb(bringer, random)]);
  const reason = () => forgetLater(machine.host.runDir, restored.slot.name) ?? '';
  if (went !== 'right') throw new Error(`${went} ${reason()}`);
  expect(await tell(restored, 'check').catch(error => `${error} ${reason()}`)).toBe('right');
  return { restored, cameLater: bringer !== undefined };
}

/** Ends it and its children. */
const endPlayer = (sandbox: TestSandbox) =>
  sandbox.run('p=$(cat /root/player.pid); kill -9 -- -$p; while kill -0 -- -$p; do sleep 0.01; done');

test(
  `${seeds} programs find in their memory what they left, whatever they do while it comes (LATER_SEED=${first})`,
  async () => {
    let sandbox = await startSandbox();
    let later = 0;
    for (let seed = first; seed < first + seeds; seed++) {
      const random = randomOf(seed);
      await startPlayer(sandbox, seed);
      for (let round = 0; round < rounds; round++) {
        const { restored, cameLater } = await playRound(sandbox, random);
        sandbox = restored;
        if (cameLater) later++;
      }
      await endPlayer(sandbox);
    }
    // If a child lives at the time of a pause, what it shares with its parent arrives at once.
    expect(later).toBeGreaterThan(0);
  },
  seeds * 60_000,
);

const mremap = process.arch === 'arm64' ? 216 : 25;
const isPlayer = (pid: number) => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'memory-player\n';
/** How many threads of a process are in a system call. */
const threadsIn = (pid: number, call: number) =>
  readdirSync(`/proc/${pid}/task`).filter(tid =>
    readFileSync(`/proc/${pid}/task/${tid}/syscall`, 'utf8').startsWith(`${call} `),
  ).length;

test('where memory went to where other memory was that moment, both are what they were', async () => {
  const sandbox = await startSandbox();
  await startPlayer(sandbox, 1);
  await tell(sandbox, 'swap');
  const { restored, bringer } = await restore(sandbox, await pause(sandbox), muchMemory);
  const pid = await playerIn(restored);
  process.kill(pid, 'SIGUSR1');
  await waitFor('both to move', () => threadsIn(pid, mremap) === 2);
  process.kill(bringer as number, 'SIGCONT');
  const reason = () => forgetLater(machine.host.runDir, restored.slot.name);
  expect(await tell(restored, 'swapped').catch(error => `${error} ${reason()}`)).toBe('right');
  expect(await tell(restored, 'check')).toBe('right');
}, 60_000);

test('programs are told that there are no guard regions, of which the kernel would not tell', async () => {
  const sandbox = await startSandbox();
  await startPlayer(sandbox, 1);
  expect(await tell(sandbox, 'guard')).toBe('Invalid argument');
}, 60_000);

/** Resident bytes of a process. Source: proc(5), `statm`. */
const residentBytes = (pid: number) => Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * 4096;

/** So little processor time per tenth of a second that memory takes seconds to arrive, whatever else runs. */
const little = { ...resources, cpuCount: 0.02 };

/** Gives a process little processor time; disposal ends the process. */
function slowDown(pid: number): AsyncDisposable {
  const { cgroups } = machine.host;
  const group = `${machine.cgroup}/slow`;
  for (const path of cgroups.make(group, little)) writeFileSync(join(path, 'cgroup.procs'), String(pid));
  return {
    async [Symbol.asyncDispose]() {
      ifThere(() => process.kill(pid, 'SIGKILL'), undefined);
      await cgroups.remove(group);
    },
  };
}

const playerIn = ({ source }: TestSandbox) => waitFor('the player', () => source.group.processes().find(isPlayer));

/**
 * Restores until less than half of the player's memory is there: on a busy machine, all of it may arrive before it is
 * held.
 */
async function restoreWithout(sandbox: TestSandbox) {
  const before = residentBytes(await playerIn(sandbox));
  for (let last = sandbox; ;) {
    const { restored, bringer = 0 } = await restore(last, await pause(last), muchMemory);
    const pid = await playerIn(restored);
    if (residentBytes(pid) < before / 2) return { restored, bringer, pid, before };
    ifThere(() => process.kill(bringer, 'SIGCONT'), undefined);
    last = restored;
  }
}

test('of a process and its child the child is the last to get what nobody waits for', async () => {
  const sandbox = await startSandbox();
  await startPlayer(sandbox, 1);
  const { restored, bringer, pid, before } = await restoreWithout(sandbox);
  await using _ = slowDown(bringer);
  process.kill(bringer, 'SIGCONT');
  process.kill(pid, 'SIGUSR2');
  const seen: { parent: number; child: number }[] = [];
  while (comes()) {
    const child = restored.source.group.processes().find(other => other !== pid && isPlayer(other));
    // The child first: more of both may arrive between the two looks.
    if (child !== undefined) seen.push({ child: residentBytes(child), parent: residentBytes(pid) });
    await Bun.sleep(5);
  }
  const most = Math.max(...seen.map(({ child }) => child));
  expect(most).toBeGreaterThan(before / 2);
  expect(seen.filter(({ parent, child }) => child > before / 2 && parent < before * 0.9)).toEqual([]);
}, 60_000);
