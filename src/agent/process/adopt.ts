import type { Log } from '../../base/telemetry/log.ts';
import type { OrphanEnd } from '../durable/state-file.ts';
import { logProcess } from './process-log.ts';
import { endEventOf, endingOfWaitStatus } from './end-status.ts';
import { Process } from './process.ts';
import type { ProcessHost } from './process-host.ts';
import { leftUntilEnd, type ProcessRecord } from './process-record.ts';
import type { Program } from './program.ts';
import type { Child } from './spawner.ts';

/**
 * Adopts the processes of an agent that was killed: they can be listed, attached to and signalled, and their real exit
 * status is reported. Their input and output were lost with the agent. Process 1 says which of them run: it started
 * them. What the kernel reports about a process, such as its start time, changes when it is restored from memory.
 */
export async function adoptProcesses(agent: ProcessHost & { log: Log }): Promise<void> {
  // Only `start` saves anything there.
  const found = agent.state.readProcesses() as { slot: number; record: ProcessRecord }[];
  found.sort((one, other) => one.record.startedAtMs - other.record.startedAtMs);
  // A program that has ended while others still write for it no longer owns its PID; a later program may have it.
  const newest = new Map(found.map(({ slot, record }) => [record.pid, slot]));
  const children = await Promise.all(
    found.map(async ({ slot, record: { pid } }) =>
      newest.get(pid) === slot ? await agent.spawner.adopt(pid) : undefined,
    ),
  );
  for (const [index, { slot, record }] of found.entries()) {
    const { pid, config, tag } = record;
    const child = children[index];
    if (child !== undefined) {
      const log = logProcess(agent.journal, agent.outputBudget, {
        pid,
        config,
        tag,
        user: '',
        environment: agent.settings().envVars,
        withOutput: false,
        adopted: true,
      });
      const process = new Process(adoptedProgram(agent, child), config, tag, { outOfMemory: agent.outOfMemory, log });
      agent.processes.add(process, () => agent.state.removeProcess(slot));
      const leftMs = leftUntilEnd(record, agent.native);
      if (leftMs !== undefined) process.endWithin(leftMs);
      agent.log.warn('took over a process without its input and output', { pid });
    } else {
      const end = lastEnd(agent.state.orphanEnds(), pid);
      if (end) agent.processes.addEnded({ pid, tag, event: endEventOf(endingOfWaitStatus(end.status), false) });
      agent.state.removeProcess(slot);
    }
  }
}

function adoptedProgram({ spawner }: Pick<ProcessHost, 'spawner'>, { pid, ended }: Child): Program {
  return {
    pid,
    ended,
    outputs: [],
    input: undefined,
    signal: number => spawner.signal(pid, number),
    resize: () => false,
  };
}

const lastEnd = (ends: OrphanEnd[], pid: number): OrphanEnd | undefined => ends.findLast(end => end.pid === pid);
