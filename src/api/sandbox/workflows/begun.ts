import type { ExecutionRef, NodeProtocol, PausedSandbox } from '../../../protocol/node.ts';

/**
 * What became of an execution that was asked of a node by somebody who did not hear the answer: it runs, or its node,
 * cut off from control, has paused it since. Null: it never began, and never will; or it has ended.
 */
export async function findBegun(node: NodeProtocol, target: ExecutionRef): Promise<'running' | PausedSandbox | null> {
  if (await node.withdraw(target)) return null;
  const isIt = ({ executionId }: ExecutionRef) => executionId === target.executionId;
  // In this order: what is paused after it was not among the running ones is among the paused ones.
  if ((await node.list()).some(isIt)) return 'running';
  return (await node.listPaused()).find(isIt) ?? null;
}
