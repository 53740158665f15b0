import { AtollError, messageOf } from '../../base/error.ts';
import { agentPort } from '../../protocol/agent.ts';
import type { NetworkNamespace } from '../native/netns.ts';
import { dial } from '../network/dial.ts';
import { requestOnce } from './stream.ts';

/**
 * How long a running agent may take to answer, even if its sandbox is busy or it is being started again. Milliseconds.
 */
const patienceMs = 5_000;
const againAfterMs = 100;

/** Resolves when the agent of a running sandbox answers. Errors: `unavailable` if it does not. */
export async function agentAnswers(namespace: NetworkNamespace): Promise<void> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    try {
      return await ask(namespace, deadline - performance.now());
    } catch (cause) {
      if (performance.now() + againAfterMs > deadline)
        throw new AtollError('unavailable', `The sandbox runs on: its agent does not answer (${messageOf(cause)})`, {
          cause,
        });
    }
    await Bun.sleep(againAfterMs);
  }
}

async function ask(namespace: NetworkNamespace, timeoutMs: number): Promise<void> {
  const fd = await dial(namespace, agentPort, AbortSignal.timeout(timeoutMs));
  const fields = [{ name: 'Connection', value: 'close' }];
  const request = { method: 'GET', path: '/health', fields } as const;
  const { status } = await requestOnce(fd, request, { onData: () => 'enough', timeoutMs });
  if (status !== 204) throw new AtollError('unavailable', `it answered ${status}`);
}
