import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { readIfThere, writeWhole } from '../../base/small-file.ts';
import { parseJson } from '../../base/json-text.ts';

const endTimeoutMs = 60_000;
const pollMs = 50;

type Instance = { pid: number; startTicks: string | undefined; goesDown?: boolean } & Partial<Ways>;

/** How to reach a serving platform: `url` for commands on this machine, `origin` for browsers. */
export type Ways = { url: string; origin: string };

const fileOf = (dataDir: string) => join(dataDir, 'instance.json');

/**
 * Records that this process is the platform of the data directory, so that `down` finds it. The lock belongs to the
 * node.
 */
export function recordInstance(dataDir: string, ways?: Ways): void {
  const instance: Instance = { pid: process.pid, startTicks: startTicksOf(process.pid), ...ways };
  writeWhole(fileOf(dataDir), JSON.stringify(instance));
}

/** Removes that record, unless another process has meanwhile replaced it. */
export function forgetInstance(dataDir: string): void {
  if (runningInstance(dataDir)?.pid === process.pid) rmSync(fileOf(dataDir), { force: true });
}

/**
 * Refuses a second platform on the data directory; otherwise it would only hear that its port is taken. Throws
 * `conflict`.
 */
export function requireNoInstance(dataDir: string): void {
  const instance = runningInstance(dataDir);
  if (!instance) return;
  const where = instance.origin === undefined ? '' : `, at ${instance.origin}`;
  throw new AtollError(
    'conflict',
    `The platform of ${dataDir} runs already (process ${instance.pid}${where}). End it with \`atoll stop\`; its ` +
      'sandboxes run on, and the next start takes them over. For a second one, set ATOLL_DATA_DIR to another ' +
      'directory.',
  );
}

/** Tells the platform that runs on the data directory, if any, whether its sandboxes will be ended after it. */
export function announceDown(dataDir: string, goesDown: boolean): void {
  const instance = runningInstance(dataDir);
  if (instance && (instance.goesDown ?? false) !== goesDown)
    writeWhole(fileOf(dataDir), JSON.stringify({ ...instance, goesDown } satisfies Instance));
}

/** Whether that was announced to the running platform. */
export function goesDown(dataDir: string): boolean {
  return runningInstance(dataDir)?.goesDown ?? false;
}

/** Ends the platform that runs on the data directory, if any; resolves once it is gone. */
export async function endInstance(dataDir: string): Promise<boolean> {
  const instance = runningInstance(dataDir);
  if (!instance) return false;
  const { pid } = instance;
  try {
    process.kill(pid, 'SIGTERM');
  } catch {
    // It has just ended by itself.
  }
  const deadline = performance.now() + endTimeoutMs;
  while (isRunning(instance)) {
    if (performance.now() > deadline)
      throw new AtollError(
        'deadline_exceeded',
        `The platform (process ${pid}) does not end. Look at its log, or kill it and run this again.`,
      );
    await Bun.sleep(pollMs);
  }
  return true;
}

/** The URL, for this machine, of the platform that runs on the data directory, if any. */
export function runningUrl(dataDir: string): string | undefined {
  return runningInstance(dataDir)?.url;
}

/** Where browsers reach it. A platform started by an earlier release has one URL for both. */
export function runningOrigin(dataDir: string): string | undefined {
  const instance = runningInstance(dataDir);
  return instance?.origin ?? instance?.url;
}

function runningInstance(dataDir: string): Instance | undefined {
  const text = readIfThere(fileOf(dataDir));
  // A file truncated by a loss of power says nothing; the lock of the directory still keeps a second platform out.
  const instance = text === undefined ? undefined : (parseJson(text) as Instance | undefined);
  return instance && isRunning(instance) ? instance : undefined;
}

/** The PID may be another program's by now: only a process that started at the same moment is ours. */
const isRunning = ({ pid, startTicks }: Instance) => startTicks !== undefined && startTicksOf(pid) === startTicks;

/** Field 22 of proc(5)'s stat: when the process started. Undefined if the process is gone or a zombie. */
function startTicksOf(pid: number): string | undefined {
  const stat = readIfThere(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' ? undefined : fields[19];
}
