import { readFileSync } from 'node:fs';
import { isGone } from '../../../../base/error.ts';

/** How often the proxy is asked whether it is still there. */
const watchIntervalMs = 500;
/** It has stalled when it has computed for so long instead of answering. */
export const stalledAfterMs = 2_000;
/** And in any case after so long: a busy machine gives little time to anyone, but not none. */
export const silentAfterMs = 10_000;
/** Share of the time in which a process that computes without end gets the CPU, on a busy machine too. */
const computingShare = 0.4;
const msPerTick = 10;

/** Looks at a process again and again, between start and stop. */
export type Watch = { start(): void; stop(): void };

/** The process that is watched, and what is done with one that stands still. */
type WatchOptions = {
  pid: number;
  /** Asks the process. `answered` is called when it has answered. */
  ask(answered: () => void): void;
  /** It does not answer. Called once. */
  onStall(reason: string): void;
};

/**
 * Notices a process whose event loop does not turn. Time is counted in rounds of our own loop, so that a pause of ours
 * is not taken for one of the process.
 */
export function createWatch({ pid, ask, onStall }: WatchOptions): Watch {
  let timer: ReturnType<typeof setInterval> | undefined;
  let roundsSilent = 0;
  let cpuMsBefore = 0;

  const stop = () => clearInterval(timer);
  const round = () => {
    const cpuMs = cpuMsOf(pid);
    if (cpuMs === undefined) return;
    if (roundsSilent++ === 0) {
      cpuMsBefore = cpuMs;
      return ask(() => (roundsSilent = 0));
    }
    const silentMs = (roundsSilent - 1) * watchIntervalMs;
    if (silentMs < stalledAfterMs) return;
    const computedMs = cpuMs - cpuMsBefore;
    if (silentMs < silentAfterMs && computedMs < silentMs * computingShare) return;
    stop();
    onStall(`no answer for ${silentMs} ms, in which it computed for ${computedMs} ms`);
  };

  return {
    start() {
      timer = setInterval(round, watchIntervalMs);
      timer.unref();
    },
    stop,
  };
}

/** CPU time that a process has used, ms; 0 where it is gone, undefined where nobody can look now. */
function cpuMsOf(pid: number): number | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch (error) {
    return isGone(error) ? 0 : undefined;
  }
  const fields = text.split(') ').at(-1)?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * msPerTick;
}
