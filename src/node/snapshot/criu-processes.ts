import { readFile, readdir } from 'node:fs/promises';

/** Whether a process was started with an argument. One that has ended has none. Source: proc_pid_cmdline(5). */
export const runsWith = async (pid: number, argument: string): Promise<boolean> =>
  (await readOr(`/proc/${pid}/cmdline`)).split('\0').includes(argument);

/** All processes that were started with an argument. */
export async function processesWith(argument: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(Number);
  const run = await Promise.all(pids.map(pid => runsWith(pid, argument)));
  return pids.filter((_, index) => run[index]);
}

/** Empty where the process has ended meanwhile. */
export const readOr = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
