import { readFileSync } from 'node:fs';
import { isGone } from '../../../../base/error.ts';

/** How often the proxy is asked for a sign of life. */
const watchIntervalMs = 500;
/** A process has stalled when it has computed for this long instead of answering, */
export const stalledAfterMs = 2_000;
/** and in any case after this long: a busy machine gives everyone little time, but not none. */
export const silentAfterMs = 10_000;
/** Share of the time for which a process that computes without end gets the CPU, even on a busy machine. */
const computingShare = 0.4;
const msPerTick = 10;

/** Checks a process repeatedly between start and stop. */
export type Watch = { start(): void; stop(): void };

/** The watched process, and what to do when it stalls. */
type WatchOptions = {
  pid: number;
  /** Asks the process. It calls `answered` when the process has answered. */
  ask(answered: () => void): void;
  /** Called once, when the process does not answer. */
  onStall(reason: string): void;
};

/**
 * Notices a process whose event loop is stuck. Time is counted in rounds of this process's own loop, so that a pause
 * here is not taken for a stall there.
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

/** CPU time that a process has used, ms; 0 if it is gone, undefined if it can't be read now. */
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
