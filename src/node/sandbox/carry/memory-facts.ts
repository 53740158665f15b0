import { readFileSync } from 'node:fs';
import { machine, release } from 'node:os';
import type { MemoryFacts } from '../../../protocol/node.ts';
import type { CheckpointSupport } from '../keep/checkpoint-support.ts';

/** What memory from other machines has to fit here. `agent`: the digest of the agent. */
export function memoryFactsOf(checkpoints: CheckpointSupport, agent: string): MemoryFacts {
  return {
    architecture: machine(),
    kernel: release(),
    criu: checkpoints.supported ? checkpoints.host.criu.version : null,
    cpuFlags: cpuFlags(readFileSync('/proc/cpuinfo', 'latin1')),
    agent,
  };
}

/** The features of the first processor: x86 calls them flags, Arm features (proc(5)). */
export function cpuFlags(cpuinfo: string): string[] {
  const flags = /^(?:flags|Features)\s*:\s*(.*)$/m.exec(cpuinfo)?.[1] ?? '';
  return flags.split(/\s+/).filter(Boolean).toSorted();
}
