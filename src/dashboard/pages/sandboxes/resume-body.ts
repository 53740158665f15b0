import type { ListedSandbox } from '../../../protocol/api/sandbox.ts';

const resumeSeconds = 300;

/** What a resume asks for: memory that would bring back an agent that did not answer is left out. */
export function resumeBody({ envdUnresponsiveAtPause }: Pick<ListedSandbox, 'envdUnresponsiveAtPause'>) {
  return { timeout: resumeSeconds, ...(envdUnresponsiveAtPause && { memory: false }) };
}
