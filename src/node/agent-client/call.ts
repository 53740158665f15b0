import { AtollError } from '../../base/error.ts';
import { traceparent } from '../../base/telemetry/trace.ts';
import { agentPort, type AgentInit, controlTokenHeader, controlTokenTaken } from '../../protocol/agent.ts';
import type { NetworkNamespace } from '../native/netns.ts';
import { dial } from '../network/dial.ts';
import type { AgentOutcome } from './response.ts';
import { requestOnce } from './stream.ts';

/** Time for the connection, and then the same for the answer. Milliseconds. */
const timeoutMs = 10_000;
const refusalCharactersMax = 300;

/** Settings older than any that an agent has: it ignores them, but has by then run the code that reads real ones. */
const pastSettings: AgentInit = {
  accessToken: '',
  timestamp: new Date(-1).toISOString(),
  logOutput: true,
  envVars: { NAME: 'value' },
  defaultUser: 'root',
  defaultWorkdir: '/',
  hostname: 'standby',
  filesLater: true,
};

/**
 * Sends the agent of a standby sandbox settings that it ignores, on the connected socket `fd`, which is closed in the
 * end. Code that it runs for the first time takes a millisecond longer, and nobody waits for that yet. Errors:
 * `internal` if it does not answer.
 */
export async function warmAgent(fd: number, controlToken: string): Promise<void> {
  await sendInit(fd, controlToken, Buffer.from(JSON.stringify(pastSettings)));
}

/**
 * Gives the agent its settings. They are in force when this resolves. Answers the control token that the agent now
 * uses: an agent that has served before keeps its first one. Errors: `internal` if it refuses or does not answer.
 */
export async function initAgent(namespace: NetworkNamespace, controlToken: string, init: AgentInit): Promise<string> {
  const fd = await dial(namespace, agentPort, AbortSignal.timeout(timeoutMs));
  const { status, refusal } = await sendInit(fd, controlToken, Buffer.from(JSON.stringify(init)));
  if (status === undefined) throw new AtollError('internal', 'the agent closed the connection without an answer');
  if (status === controlTokenTaken && init.controlToken !== undefined) return init.controlToken;
  if (status !== 204)
    throw new AtollError(
      'internal',
      `the agent refused its settings: ${(refusal ?? `it answered ${status}`).slice(0, refusalCharactersMax)}`,
    );
  return controlToken;
}

async function sendInit(fd: number, controlToken: string, body: Uint8Array): Promise<AgentOutcome> {
  const trace = traceparent();
  const fields = [
    { name: 'Connection', value: 'close' },
    { name: 'Content-Type', value: 'application/json' },
    ...(trace === undefined ? [] : [{ name: 'traceparent', value: trace }]),
    { name: controlTokenHeader, value: controlToken },
  ];
  // The body of a 200 holds nothing that is needed.
  const onData = () => 'enough' as const;
  const request = { method: 'POST', path: '/init', fields, body } as const;
  return requestOnce(fd, request, { onData, timeoutMs }).catch((error: unknown) => {
    throw error instanceof AtollError ? new AtollError('internal', error.message, { cause: error }) : error;
  });
}
