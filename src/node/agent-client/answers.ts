import { AtollError, messageOf } from '../../base/error.ts';
import { agentPort } from '../../protocol/agent.ts';
import type { NetworkNamespace } from '../native/netns.ts';
import { dial } from '../network/dial.ts';
import { requestOnce } from './stream.ts';

/** For the connection, and then for the answer. A sandbox that is merely busy answers within. Milliseconds. */
const timeoutMs = 3_000;

/** Resolves when the agent of a running sandbox answers. Errors: `unavailable` where it does not. */
export async function agentAnswers(namespace: NetworkNamespace): Promise<void> {
  try {
    const fd = await dial(namespace, agentPort, AbortSignal.timeout(timeoutMs));
    const fields = [{ name: 'Connection', value: 'close' }];
    const request = { method: 'GET', path: '/health', fields } as const;
    const { status } = await requestOnce(fd, request, { onData: () => 'more', timeoutMs });
    if (status !== 204) throw new AtollError('unavailable', `it answered ${status}`);
  } catch (cause) {
    throw new AtollError('unavailable', `The sandbox runs on: its agent does not answer (${messageOf(cause)})`, {
      cause,
    });
  }
}
