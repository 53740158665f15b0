import { open, readFile, readdir } from 'node:fs/promises';
import { forEachParallel } from '../../base/concurrency/parallel.ts';

/**
 * How much of a process's arguments is read; CRIU's have a few hundred bytes. A sandbox's process says where its own
 * are, and may claim that they take terabytes (prctl(2), `PR_SET_MM_MAP`).
 */
const argumentBytesMax = 4096;
/** How many processes are looked at at a time. */
const looksAtOnce = 16;

/**
 * Whether a process was started with an argument, among its first 4 KiB of arguments; false if it has ended. Source:
 * proc_pid_cmdline(5).
 */
export const runsWith = async (pid: number, argument: string): Promise<boolean> =>
  (await firstArguments(pid)).split('\0').includes(argument);

async function firstArguments(pid: number): Promise<string> {
  try {
    await using file = await open(`/proc/${pid}/cmdline`);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(argumentBytesMax), 0, argumentBytesMax, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } catch {
    return ''; // it has ended
  }
}

/** All processes that were started with an argument. */
export async function processesWith(argument: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(Number);
  const found: number[] = [];
  await forEachParallel(pids, looksAtOnce, async pid => {
    if (await runsWith(pid, argument)) found.push(pid);
  });
  return found;
}

/** Empty if the process has ended meanwhile. */
export const readOr = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
