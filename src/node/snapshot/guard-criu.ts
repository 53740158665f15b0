import { readdir } from 'node:fs/promises';
import { killIfThere } from '../../base/if-there.ts';
import { readIfThere } from '../../base/small-file.ts';
import { readOr, runsWith } from './criu-processes.ts';
import { runFile, type CriuHost } from './criu.ts';

/** Most runs end before the first look. */
const lookEveryMs = 2_000;
/**
 * After this many looks at which no process has run. That is longer than a slow disk takes to bring a page of memory.
 */
const stillLooksMax = 5;

/** Until disposal, ends a CRIU that would wait for ever. */
type CriuGuard = Disposable & {
  /** Begins to look. `first`: the sandbox's first process, which a restoring CRIU has made. */
  watch(first: number): void;
  /** During this work, CRIU waits for the platform. */
  during<T>(work: () => Promise<T>): Promise<T>;
};

/**
 * If a process of several threads is killed during a dump, the kernel tells the tracer of its first thread only once
 * the others are reaped, and CRIU waits only for the first. If one is killed during a restore, CRIU ends the sandbox's
 * first process and waits for that, which waits for the dead one, which CRIU would have to reap; and if all are
 * killed, CRIU may wait until they report progress. A process that is dead at two looks is not about to be reaped. If
 * one is killed right before CRIU seizes it at the end, nobody traces it, and all processes that CRIU has made wait
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
    // The processes that exist now: CRIU has seized those made since it began.
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

/** A process and all its descendants, including dead ones. Source: proc_pid_task(5), `children`. */
async function treeOf(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lists = await Promise.all(threads.map(thread => readOr(`/proc/${pid}/task/${thread}/children`)));
  const children = lists.join(' ').match(/\d+/g) ?? [];
  return [pid, ...(await Promise.all(children.map(child => treeOf(Number(child))))).flat()];
}

/**
 * A text that changes when one of the processes runs: how often each of their threads has given up a processor. Empty
 * if one is about to run, or waits for a disk or the like. Source: proc_pid_status(5).
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

/** The tracer of a process that is dead and not reaped; null if it is alive, gone, or not traced. */
async function tracerOfDead(pid: number): Promise<number | null> {
  const status = await readOr(statusFile(pid));
  const tracer = Number(/^TracerPid:\t(\d+)$/m.exec(status)?.[1] ?? 0);
  return isDead(status) && tracer > 0 ? tracer : null;
}

const statusFile = (pid: number) => `/proc/${pid}/status`;
const isDead = (status: string) => /^State:\tZ/m.test(status);
const isOver = (status: string) => status === '' || isDead(status);
const parentIn = (status: string) => Number(/^PPid:\t(\d+)$/m.exec(status)?.[1] ?? 0);
