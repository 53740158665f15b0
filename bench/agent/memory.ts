import { pssMiBOf } from '../measure/processes.ts';
import { startAgent, type TestAgent } from '../../test/agent/support/test-agent.ts';

/** Mean proportional set size of agents that share one built agent, as sandboxes do, after `settleMs` of rest. */
export async function idleMemory(
  copies: number,
  settleMs: number,
): Promise<{ blankMiB: number; initMiB: number; withInitMiB: number }> {
  const agents: TestAgent[] = [];
  try {
    for (let index = 0; index < copies; index++) agents.push(await startAgent({ root: 'empty', init: null }));
    await Bun.sleep(settleMs);
    const blankMiB = mean(agents.map(agent => pssMiBOf(agent.agentPid())));
    for (const agent of agents) await agent.init({ envVars: { E2B_SANDBOX: 'true' }, defaultUser: 'root' });
    await Bun.sleep(settleMs);
    return {
      blankMiB,
      withInitMiB: mean(agents.map(agent => pssMiBOf(agent.agentPid()))),
      initMiB: mean(agents.map(agent => pssMiBOf(agent.initPid))),
    };
  } finally {
    await Promise.all(agents.map(agent => agent[Symbol.asyncDispose]()));
  }
}

/** Memory that belongs to one agent alone, MiB: what it would add beside others that share its files. */
export function privateMiBOf(pid: number): number {
  const rollup = Bun.spawnSync(['cat', `/proc/${pid}/smaps_rollup`]).stdout.toString();
  return Number(/^Private_Dirty: +(\d+) kB$/m.exec(rollup)?.[1] ?? 0) / 1024;
}

/** Peak resident memory of a process, MiB. */
export function peakMiBOf(pid: number): number {
  const status = Bun.spawnSync(['cat', `/proc/${pid}/status`]).stdout.toString();
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024;
}

const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
