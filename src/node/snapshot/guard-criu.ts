import { readFile, readdir } from 'node:fs/promises';
import { killIfThere } from '../../base/if-there.ts';
import { readIfThere } from '../../base/small-file.ts';
import { runFile, type CriuHost } from './criu.ts';

/** Most runs are over before the first look. */
const lookEveryMs = 2_000;

/**
 * Ends a CRIU that would wait without end, until disposal. Where a process of several threads is killed under a dump,
 * the kernel tells the tracer of its first thread only when the others are reaped, and CRIU waits for the first one
 * alone. Where one is killed under a restore, CRIU ends the sandbox's first process and waits for that, which waits for
 * the dead one, which is CRIU's to reap; and where all are, it may wait for them to say that they have come further.
 * `first`: the sandbox's first process, which a CRIU that restores has made. What is dead at two looks is not on its
 * way to be reaped.
 */
export function guardCriu(host: Pick<CriuHost, 'runDir'>, name: string, first: number): Disposable {
  const config = runFile(host, name);
  const maker = parentIn(readIfThere(statusFile(first)) ?? '');
  let deadBefore = new Set<number>();
  let over = false;
  const look = async () => {
    const dead = new Set<number>();
    if (isOver(await readOr(statusFile(first)))) {
      dead.add(first);
      if (deadBefore.has(first) && (await runsWith(maker, config))) return void killIfThere(maker);
    }
    // Those that there are now: CRIU has taken hold of what was made since it began.
    for (const pid of await treeOf(first)) {
      const tracer = await tracerOfDead(pid);
      if (tracer === null) continue;
      dead.add(pid);
      if (deadBefore.has(pid) && (await runsWith(tracer, config))) return void killIfThere(tracer);
    }
    deadBefore = dead;
  };
  let timer = setTimeout(async function again() {
    await look();
    if (!over) timer = setTimeout(again, lookEveryMs);
  }, lookEveryMs);
  return {
    [Symbol.dispose]() {
      over = true;
      clearTimeout(timer);
    },
  };
}

/** A process and all that descend from it, the dead among them. Source: proc_pid_task(5), `children`. */
async function treeOf(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lists = await Promise.all(threads.map(thread => readOr(`/proc/${pid}/task/${thread}/children`)));
  const children = lists.join(' ').match(/\d+/g) ?? [];
  return [pid, ...(await Promise.all(children.map(child => treeOf(Number(child))))).flat()];
}

/** Who traces a process that is dead and not reaped; null where it is alive, gone, or nobody does. */
async function tracerOfDead(pid: number): Promise<number | null> {
  const status = await readOr(statusFile(pid));
  const tracer = Number(/^TracerPid:\t(\d+)$/m.exec(status)?.[1] ?? 0);
  return isDead(status) && tracer > 0 ? tracer : null;
}

const statusFile = (pid: number) => `/proc/${pid}/status`;
const isDead = (status: string) => /^State:\tZ/m.test(status);
const isOver = (status: string) => status === '' || isDead(status);
const parentIn = (status: string) => Number(/^PPid:\t(\d+)$/m.exec(status)?.[1] ?? 0);

const runsWith = async (pid: number, argument: string) =>
  (await readOr(`/proc/${pid}/cmdline`)).split('\0').includes(argument);

/** Empty where the process has ended meanwhile. */
const readOr = (path: string) => readFile(path, 'utf8').catch(() => '');
