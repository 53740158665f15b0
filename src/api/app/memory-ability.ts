import { AtollError } from '../../base/error.ts';
import type { MemoryAbility, NodeProtocol } from '../../protocol/node.ts';

/** What the API calls the refusal to keep memory, for programs. */
export const memoryUnavailable = 'sandbox_memory_unavailable';

/** Refuses what needs the memory of a sandbox on a machine that can't keep it (`precondition`), before anything is changed. */
export async function requireMemory(node: NodeProtocol, what: string, instead: string): Promise<void> {
  const { memory } = await node.info();
  if (!memory.kept) throw cannotKeep(memory, what, instead);
}

export function cannotKeep({ reason }: MemoryAbility & { kept: false }, what: string, instead: string): AtollError {
  return new AtollError('precondition', `${what}: the memory of sandboxes can't be kept here (${reason}); ${instead}`, { detail: memoryUnavailable });
}
