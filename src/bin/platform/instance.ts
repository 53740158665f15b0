import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { readIfThere, writeWhole } from '../../base/small-file.ts';
import { parseJson } from '../../base/json-text.ts';

const endTimeoutMs = 60_000;
const pollMs = 50;

type Instance = { pid: number; startTicks: string | undefined; goesDown?: boolean } & Partial<Ways>;

/** The ways to a platform that serves: `url` for commands on this machine, `origin` for browsers. */
export type Ways = { url: string; origin: string };

const fileOf = (dataDir: string) => join(dataDir, 'instance.json');

/** Records that this process is the platform of the data directory, so that `down` finds it. The lock is the node's. */
export function recordInstance(dataDir: string, ways?: Ways): void {
  const instance: Instance = { pid: process.pid, startTicks: startTicksOf(process.pid), ...ways };
  writeWhole(fileOf(dataDir), JSON.stringify(instance));
}

/** Takes that back, unless another process has meanwhile put its own in place. */
export function forgetInstance(dataDir: string): void {
  if (runningInstance(dataDir)?.pid === process.pid) rmSync(fileOf(dataDir), { force: true });
}

/** Refuses a second platform on the data directory, before its taken port is all that is said. Throws `conflict`. */
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

/** Tells the platform that runs on the data directory, if one does, whether its sandboxes are ended after it. */
export function announceDown(dataDir: string, goesDown: boolean): void {
  const instance = runningInstance(dataDir);
  if (instance && (instance.goesDown ?? false) !== goesDown)
    writeWhole(fileOf(dataDir), JSON.stringify({ ...instance, goesDown } satisfies Instance));
}

/** Whether that was announced to the platform that runs. */
export function goesDown(dataDir: string): boolean {
  return runningInstance(dataDir)?.goesDown ?? false;
}

/** Ends the platform that runs on the data directory, if one does, and answers when it is gone. */
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

/** The URL of the platform that runs on the data directory, if one does: for this machine. */
export function runningUrl(dataDir: string): string | undefined {
  return runningInstance(dataDir)?.url;
}

/** Where browsers reach it. One that a release before this has started has one URL for both. */
export function runningOrigin(dataDir: string): string | undefined {
  const instance = runningInstance(dataDir);
  return instance?.origin ?? instance?.url;
}

function runningInstance(dataDir: string): Instance | undefined {
  const text = readIfThere(fileOf(dataDir));
  // A file that a loss of power cut off says nothing; the lock of the directory still keeps a second platform out.
  const instance = text === undefined ? undefined : (parseJson(text) as Instance | undefined);
  return instance && isRunning(instance) ? instance : undefined;
}

/** The number may be another program's by now: only one that started at the same moment is ours. */
const isRunning = ({ pid, startTicks }: Instance) => startTicks !== undefined && startTicksOf(pid) === startTicks;

/** Field 22 of proc(5)'s stat: when the process started. Undefined for a process that is gone or a zombie. */
function startTicksOf(pid: number): string | undefined {
  const stat = readIfThere(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' ? undefined : fields[19];
}
