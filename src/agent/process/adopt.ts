import type { Log } from '../../base/telemetry/log.ts';
import type { OrphanEnd } from '../durable/state-file.ts';
import { logProcess } from './process-log.ts';
import { readSmallFile } from '../sandbox/small-file.ts';
import type { ProcessConfig } from './config.ts';
import { endEventOf, endingOfWaitStatus, type Ending } from './end-status.ts';
import { Process } from './process.ts';
import type { ProcessHost } from './process-host.ts';
import type { Program } from './program.ts';

/** Record of a process in case that the agent is killed. */
export type ProcessRecord = { pid: number; startedAtMs: number; config: ProcessConfig; tag: string | undefined };

/** Interval at which an adopted process is looked at, milliseconds: init reaps it, so the agent gets no signal. */
const lookMs = 200;
/** Start times count in hundredths of a second (USER_HZ), and the clock may be set meanwhile. */
const ageSlackMs = 2000;
const ticksPerSecond = 100;

/**
 * Adopts the processes of an agent that was killed: they are children of init now. They can be listed, attached to and
 * signalled, and their real exit status is reported. Their input and output were lost with the agent.
 */
export function adoptProcesses(agent: Omit<ProcessHost, 'native'> & { log: Log }): void {
  for (const { slot, record } of agent.state.readProcesses()) {
    // Only `start` ever saved anything there.
    const { pid, startedAtMs, config, tag } = record as ProcessRecord;
    const startTicks = startTicksOf(pid);
    if (startTicks !== undefined && isSame(startTicks, startedAtMs)) {
      const log = logProcess(agent.journal, agent.outputBudget, {
        pid,
        config,
        tag,
        user: '',
        environment: agent.settings().envVars,
        withOutput: false,
        adopted: true,
      });
      const process = new Process(adoptedProgram(agent, pid, startTicks), config, tag, {
        outOfMemory: agent.outOfMemory,
        log,
      });
      agent.processes.add(process, () => agent.state.removeProcess(slot));
      agent.log.warn('took over a process without its input and output', { pid });
    } else {
      const end = lastEnd(agent.state.orphanEnds(), pid);
      if (end) agent.processes.addEnded({ pid, tag, event: endEventOf(endingOfWaitStatus(end.status), false) });
      agent.state.removeProcess(slot);
    }
  }
}

function adoptedProgram(agent: Pick<ProcessHost, 'state' | 'spawner'>, pid: number, startTicks: number): Program {
  const ended = Promise.withResolvers<Ending>();
  const isThere = () => startTicksOf(pid) === startTicks;
  const timer = setInterval(() => {
    if (isThere()) return;
    clearInterval(timer);
    const end = lastEnd(agent.state.orphanEnds(), pid);
    // More orphans ended at once than are remembered: the least that is true is that it was not a plain success.
    ended.resolve(end ? endingOfWaitStatus(end.status) : { signal: 9 });
  }, lookMs);
  return {
    pid,
    ended: ended.promise,
    outputs: [],
    input: undefined,
    signal(number) {
      if (isThere()) agent.spawner.signal(pid, number);
    },
    resize: () => false,
  };
}

const lastEnd = (ends: OrphanEnd[], pid: number): OrphanEnd | undefined => ends.findLast(end => end.pid === pid);

/** Start of a process in ticks since the machine's; undefined where there is none, or only a zombie. */
function startTicksOf(pid: number): number | undefined {
  const text = readSmallFile(`/proc/${pid}/stat`);
  // The name, in parentheses, can hold anything; after it come the fields from the third on (proc_pid_stat(5)).
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ');
  return fields === undefined || fields[0] === 'Z' ? undefined : Number(fields[19]);
}

function isSame(startTicks: number, startedAtMs: number): boolean {
  const [uptimeSeconds] = (readSmallFile('/proc/uptime') ?? '').split(' ');
  const ageMs = (Number(uptimeSeconds) - startTicks / ticksPerSecond) * 1000;
  return Math.abs(ageMs - (Date.now() - startedAtMs)) < ageSlackMs;
}
