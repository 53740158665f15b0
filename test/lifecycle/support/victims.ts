import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { partsOf, type PartName } from '../../parts/support/parts-of.ts';
import { ifThere, killIfThere } from '../../../src/base/if-there.ts';
import { bringersOf, bringsAlone, type Bringers } from '../../snapshot/support/bringers.ts';
import { holdingsOf, runDirOf } from '../../support/leaks.ts';
import type { TestPlatform } from '../../support/platform.ts';
import { waitFor } from '../../support/process.ts';

/** The whole platform, one of its processes, or one that works for it. */
export const parts = ['platform', 'node', 'api', 'edge', 'helper', 'egress', 'builder', 'agent', 'criu'] as const;
/**
 * What a storm kills: these, the bringer of a running sandbox's memory, and its watcher, which ends the sandbox if the
 * bringer ends.
 */
export const victims = [...parts, 'bringer', 'keeper'] as const;
export type Victim = (typeof victims)[number];

const recoveryMs = 120_000;
/** CRIU runs only briefly: how long to wait for the next one. */
const criuWaitMs = 1_500;

/** The bringer of memory exists only briefly too, after requests of clients. */
const bringerWaitMs = 10_000;
/** A restore is over by then; look for the next one. */
const looksMax = 10_000;

/** Finds a victim that exists only while clients work. `holds`: it stands still from CRIU's exit until it is killed. */
export async function approach(platform: TestPlatform, victim: Victim, holds: boolean): Promise<Bringers | undefined> {
  if (victim !== 'bringer' && victim !== 'keeper') return undefined;
  const run = runDirOf(platform.ready.dataDir);
  const find = async () => {
    const [found] = bringersOf(run).toSorted((a, b) => b.bringer - a.bringer);
    if (!found || !holds) return found;
    for (let looks = 0; looks < looksMax && existsSync(`/proc/${found.bringer}`); looks++) {
      if (bringsAlone(found) && ifThere(() => process.kill(found.bringer, 'SIGSTOP'), false)) return found;
      await new Promise(setImmediate);
    }
    return undefined;
  };
  return waitFor('who brings memory', find, bringerWaitMs).catch(() => undefined);
}

/**
 * Kills the victim. Answers how many processes that were, and a function that waits until the platform serves again.
 */
export async function strike(
  platform: TestPlatform,
  victim: Victim,
  found?: Bringers,
): Promise<{ count: number; recovered: () => Promise<void> }> {
  if (victim === 'platform') {
    await platform.kill9();
    return { count: 1, recovered: () => platform.restart() };
  }
  const recovered = () => serves(platform);
  if (victim === 'bringer' || victim === 'keeper') return { count: await strikeMemory(victim, found), recovered };
  const pid = platform.pid();
  if (victim === 'criu') {
    await waitFor('CRIU', () => criuOf(platform).length > 0, criuWaitMs).catch(() => undefined);
    killAll(criuOf(platform));
  } else if (victim === 'builder') killAll(buildersOf(platform));
  else if (victim === 'agent') killAll(agentsOf(platform));
  else if (victim === 'helper' || victim === 'egress') killAll(below(await running(pid, 'node')).filter(isA(victim)));
  else killAll([await running(pid, victim)]);
  return { count: 1, recovered };
}

/** Kills one of the two, for one sandbox: without both, its programs would see zeros (docs/pause.md). */
async function strikeMemory(victim: 'bringer' | 'keeper', found: Bringers | undefined): Promise<number> {
  if (!found || !killIfThere(found[victim])) return 0;
  if (victim === 'keeper') ifThere(() => process.kill(found.bringer, 'SIGCONT'), false);
  // Until then the sandbox may run.
  else await waitFor('the end of its sandbox', () => !existsSync(`/proc/${found.keeper}`));
  return 1;
}

/** The process of a part, as soon as there is one: an earlier victim may have taken it along a moment later. */
const running = (supervisor: number, name: PartName) =>
  waitFor(`the ${name} to run`, () => partsOf(supervisor)[name], recoveryMs);

/** Every part runs, and the platform answers requests that need all of them. */
async function serves(platform: TestPlatform): Promise<void> {
  await waitFor(
    'the platform to serve again',
    async () => {
      if (Object.keys(partsOf(platform.pid())).length < 3) return false;
      const answer = await platform.api('GET', '/v2/sandboxes').catch(() => undefined);
      return answer?.status === 200;
    },
    recoveryMs,
  );
}

function isA(victim: 'helper' | 'egress'): (pid: number) => boolean {
  // Bringers of memory are its children too, but no part of the platform.
  const name = victim === 'helper' ? /\/helper(?:\0(?!bring-later)|$)/ : /\0egress-proxy(?:\0|$)/;
  return pid => name.test(readOr(`/proc/${pid}/cmdline`));
}

/** The processes of CRIU that work for the installation. */
export function criuOf(platform: TestPlatform): number[] {
  const run = installationOf(platform);
  return pids().filter(pid => {
    const argv = readOr(`/proc/${pid}/cmdline`).split('\0');
    return (
      (argv.includes('dump') || argv.includes('restore')) &&
      argv.some(part => part.startsWith(`/run/atoll/${run}/`) && part.endsWith('.conf'))
    );
  });
}

/** The processes that read strangers' input to builds. */
function buildersOf(platform: TestPlatform): number[] {
  const group = `/atoll${installationOf(platform)}-builders`;
  return pids().filter(pid => readOr(`/proc/${pid}/cgroup`).includes(group));
}

const installationOf = ({ ready }: TestPlatform) =>
  namesIn('/run/atoll').find(name => readOr(join('/run/atoll', name, 'owner')) === ready.dataDir);

/** What a CRIU is doing: its arguments, the end of its log, and everything that it made or traces, by thread. */
export function storyOf(criu: number): string {
  const argv = readOr(`/proc/${criu}/cmdline`).split('\0');
  const config = argv.find(part => part.endsWith('.conf')) ?? '';
  const threads = pids().flatMap(pid => namesIn(`/proc/${pid}/task`).map(thread => `/proc/${pid}/task/${thread}`));
  const its = threads.flatMap(thread => {
    const status = readOr(`${thread}/status`);
    const isIts = new RegExp(`^(Tgid|PPid|TracerPid):\\t${criu}$`, 'm').test(status);
    const lines = status.split('\n').filter(line => /^(Name|State|PPid|TracerPid|NSpid|SigPnd|ShdPnd):/.test(line));
    return isIts ? [`${thread} ${lines.join(' ')} ${readOr(`${thread}/syscall`)}`] : [];
  });
  const log = readOr(config.replace(/conf$/, 'log')).slice(-1500);
  return [`CRIU ${criu}: ${argv.join(' ')}`, ...its, log].join('\n');
}

const agentsOf = ({ ready }: TestPlatform) =>
  holdingsOf(ready.dataDir).processes.flatMap(line => (line.endsWith(' agent') ? [Number(line.split(' ')[0])] : []));

/** A process's children and their descendants. */
function below(pid: number): number[] {
  const children = pids().filter(child => parentOf(child) === pid);
  return children.flatMap(child => [child, ...below(child)]);
}

const parentOf = (pid: number) =>
  Number(
    readOr(`/proc/${pid}/stat`)
      .replace(/^.*\) /s, '')
      .split(' ')[1],
  );
const pids = () =>
  namesIn('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number);

function killAll(found: number[]): void {
  for (const pid of found) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // it has ended
  }
}
