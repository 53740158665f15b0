import { AtollError } from '../base/error.ts';
import { outliveFaults } from '../base/telemetry/faults.ts';
import type { Log } from '../base/telemetry/log.ts';
import { createAfterAnswer } from './after-answer.ts';
import type { Agent } from './agent.ts';
import { openStateFile } from './durable/state-file.ts';
import { fileRoutes } from './files/routes.ts';
import { filesystemMethods } from './filesystem/methods.ts';
import { createOutputBudget } from './journal/budget.ts';
import { Journal } from './journal/journal.ts';
import { openNative } from './native.ts';
import { adoptProcesses } from './process/adopt.ts';
import { processMethods } from './process/methods.ts';
import { ProcessTable } from './process/process-table.ts';
import { openSpawner } from './process/spawner.ts';
import { sandboxRoutes } from './sandbox-routes.ts';
import { watchOutOfMemory } from './process/out-of-memory.ts';
import { serve } from './serve.ts';
import { openSettings } from './settings.ts';

/** Settings of an agent process, from its command line. */
type AgentOptions = {
  /** 0: a free port, which the log names. */
  port: number;
  initPath: string;
  /** The memfd that init made. */
  stateFd: number;
  /** Called once it serves. */
  serves(): void;
  log: Log;
};

/** Assembles the agent and serves. */
export async function runAgent({ port, initPath, stateFd, serves, log }: AgentOptions): Promise<void> {
  hideMemory();
  const state = openStateFile(stateFd);
  const store = openSettings(state);
  const native = openNative();
  const agent: Agent = {
    log,
    initPath,
    native,
    spawner: openSpawner(native, log),
    state,
    store,
    afterAnswer: createAfterAnswer(),
    processes: new ProcessTable(),
    outOfMemory: watchOutOfMemory(),
    journal: new Journal(crypto.randomUUID()),
    outputBudget: createOutputBudget(),
    settings() {
      if (!store.current) throw new AtollError('unavailable', 'the sandbox is not ready yet');
      return store.current;
    },
  };
  if (store.current) {
    agent.journal.add('warn', 'agent', 'the agent was started again: what its processes wrote meanwhile is lost', {
      event: 'restart',
    });
    await adoptProcesses(agent);
  }
  const routes = new Map([...sandboxRoutes(), ...fileRoutes()]);
  const methods = new Map([...processMethods(agent), ...filesystemMethods(agent)]);
  const server = serve({ agent, routes, methods }, port);
  serves();
  outliveFaults(log, 'the agent');
  log.info('listening', { port: server.port });
}

/**
 * Hides the sandbox's tokens from its other processes, even root's: after a change of its group, they can neither trace
 * this process nor read its memory and descriptors in /proc (proc(5), "dumpable"; prctl(2), PR_SET_DUMPABLE). An agent
 * that init starts comes with a group other than its real one, so that it is hidden from the beginning.
 */
function hideMemory(): void {
  if (process.getuid?.() !== 0 || !process.setegid || !process.setgid) return;
  process.setegid(65_534);
  process.setgid(0);
}
