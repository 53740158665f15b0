import type { ListedSandbox } from '../../../protocol/api/sandbox.ts';

const resumeSeconds = 300;

/** The body of a resume: it leaves out memory that would bring back an unresponsive agent. */
export function resumeBody({ envdUnresponsiveAtPause }: Pick<ListedSandbox, 'envdUnresponsiveAtPause'>) {
  return { timeout: resumeSeconds, ...(envdUnresponsiveAtPause && { memory: false }) };
}
