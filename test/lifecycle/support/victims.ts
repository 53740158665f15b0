import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { partsOf, type PartName } from '../../parts/support/parts-of.ts';
import { holdingsOf } from '../../support/leaks.ts';
import type { TestPlatform } from '../../support/platform.ts';
import { waitFor } from '../../support/process.ts';

/** What a storm kills: the whole platform, one of its processes, or one that works for it. */
export const victims = ['platform', 'node', 'api', 'edge', 'helper', 'egress', 'builder', 'agent', 'criu'] as const;
export type Victim = (typeof victims)[number];

const recoveryMs = 120_000;
/** CRIU runs for a moment at a time: the next one is waited for so long. */
const criuWaitMs = 1_500;

/** Kills the victim, and answers what waits until the platform serves again. */
export async function strike(platform: TestPlatform, victim: Victim): Promise<() => Promise<void>> {
  if (victim === 'platform') {
    await platform.kill9();
    return () => platform.restart();
  }
  const pid = platform.pid();
  if (victim === 'criu') {
    await waitFor('CRIU', () => criuOf(platform).length > 0, criuWaitMs).catch(() => undefined);
    killAll(criuOf(platform));
  } else if (victim === 'builder') killAll(buildersOf(platform));
  else if (victim === 'agent') killAll(agentsOf(platform));
  else if (victim === 'helper' || victim === 'egress') killAll(below(await running(pid, 'node')).filter(isA(victim)));
  else killAll([await running(pid, victim)]);
  return () => serves(platform);
}

/** The process of a part, as soon as there is one: what was killed before may have taken it along a moment later. */
const running = (supervisor: number, name: PartName) =>
  waitFor(`the ${name} to run`, () => partsOf(supervisor)[name], recoveryMs);

/** Every part runs, and the platform answers what needs all of them. */
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
  const name = victim === 'helper' ? /\/helper(?:\0|$)/ : /\0egress-proxy(?:\0|$)/;
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

/** The processes that read what strangers have given to builds. */
function buildersOf(platform: TestPlatform): number[] {
  const group = `/atoll${installationOf(platform)}-builders`;
  return pids().filter(pid => readOr(`/proc/${pid}/cgroup`).includes(group));
}

const installationOf = ({ ready }: TestPlatform) =>
  namesIn('/run/atoll').find(name => readOr(join('/run/atoll', name, 'owner')) === ready.dataDir);

/** What a CRIU is doing: its arguments, what its log says last, and all that it made or traces, by thread. */
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

/** A process's children and theirs. */
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
