import { readdir } from 'node:fs/promises';
import { killIfThere } from '../../base/if-there.ts';
import { readIfThere } from '../../base/small-file.ts';
import { readOr, runsWith } from './criu-processes.ts';
import { runFile, type CriuHost } from './criu.ts';

/** Most runs are over before the first look. */
const lookEveryMs = 2_000;
/** At so many looks nobody has run. It takes longer than a slow disk to bring a page of memory that comes later. */
const stillLooksMax = 5;

/** Ends a CRIU that would wait without end, until disposal. */
type CriuGuard = Disposable & {
  /** `first`: the sandbox's first process, which a CRIU that restores has made. Looks begin. */
  watch(first: number): void;
  /** While this is done, CRIU waits for the platform. */
  during<T>(work: () => Promise<T>): Promise<T>;
};

/**
 * Where a process of several threads is killed under a dump, the kernel tells the tracer of its first thread only when
 * the others are reaped, and CRIU waits for the first one alone. Where one is killed under a restore, CRIU ends the
 * sandbox's first process and waits for that, which waits for the dead one, which is CRIU's to reap; and where all are,
 * it may wait for them to say that they have come further. What is dead at two looks is not on its way to be reaped.
 * Where one is killed right before CRIU takes hold of it in the end, nobody traces it, and all that CRIU has made wait
 * for it: they stand still.
 */
export function guardCriu(host: Pick<CriuHost, 'runDir'>, name: string, everyMs = lookEveryMs): CriuGuard {
  const config = runFile(host, name);
  let [first, maker] = [0, 0];
  let deadBefore = new Set<number>();
  let still = { looks: 0, standing: '' };
  let over = false;
  let waits = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = async () => {
    const dead = new Set<number>();
    const madeFirst = await runsWith(maker, config);
    if (isOver(await readOr(statusFile(first)))) {
      dead.add(first);
      if (deadBefore.has(first) && madeFirst) return void killIfThere(maker);
    }
    // Those that there are now: CRIU has taken hold of what was made since it began.
    for (const pid of await treeOf(first)) {
      const tracer = await tracerOfDead(pid);
      if (tracer === null) continue;
      dead.add(pid);
      if (deadBefore.has(pid) && (await runsWith(tracer, config))) return void killIfThere(tracer);
    }
    deadBefore = dead;
    const standing = madeFirst ? await standingOf(await treeOf(maker)) : '';
    const isStill = waits === 0 && standing !== '' && standing === still.standing;
    still = { standing, looks: isStill ? still.looks + 1 : 0 };
    if (still.looks >= stillLooksMax) killIfThere(maker);
  };
  return {
    watch(pid) {
      first = pid;
      maker = parentIn(readIfThere(statusFile(first)) ?? '');
      timer = setTimeout(async function again() {
        await look();
        if (!over) timer = setTimeout(again, everyMs);
      }, everyMs);
    },
    async during(work) {
      waits++;
      return work().finally(() => void waits--);
    },
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

/**
 * What changes when one of the processes runs: how often each of their threads has given a processor away. Empty where
 * one is about to run, or waits for a disk or the like. Source: proc_pid_status(5).
 */
async function standingOf(pids: number[]): Promise<string> {
  const lines: string[] = [];
  for (const pid of pids)
    for (const thread of await readdir(`/proc/${pid}/task`).catch(() => [])) {
      const status = await readOr(`/proc/${pid}/task/${thread}/status`);
      if (/^State:\t[RD]/m.test(status)) return '';
      lines.push(thread, ...(status.match(/^\w*voluntary_ctxt_switches:.*$/gm) ?? []));
    }
  return lines.join(' ');
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
