import { AtollError } from '../../../base/error.ts';
import type { ExecutionRef, MemoryAbility, NodeProtocol } from '../../../protocol/node.ts';
import type { DriverName } from '../../../protocol/driver.ts';

/** The name of the refusal to keep memory, for programs. */
export const memoryUnavailable = 'sandbox_memory_unavailable';

/**
 * Refuses an operation that needs the memory of a running sandbox where it can't be kept (`precondition`), before
 * anything is changed.
 */
export async function requireMemory(
  node: NodeProtocol,
  { sandboxId, executionId }: ExecutionRef,
  what: string,
  instead: string,
): Promise<void> {
  const memory = await node.memoryAbility({ sandboxId, executionId });
  if (!memory.kept) throw cannotKeep(memory, what, instead);
}

/** The same for a new sandbox; `driver` is what its template asks for. */
export async function requireMemoryOfDriver(
  node: NodeProtocol,
  driver: DriverName | undefined,
  what: string,
  instead: string,
): Promise<void> {
  const { memory, memoryByDriver } = await node.info();
  const ability = driver === undefined ? memory : memoryByDriver[driver];
  // A driver that the node lacks makes the create itself fail.
  if (ability && !ability.kept) throw cannotKeep(ability, what, instead);
}

function cannotKeep({ reason }: MemoryAbility & { kept: false }, what: string, instead: string): AtollError {
  return new AtollError('precondition', `${what}: the memory of sandboxes can't be kept here (${reason}); ${instead}`, {
    detail: memoryUnavailable,
  });
}
