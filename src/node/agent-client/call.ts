import { AtollError } from '../../base/error.ts';
import { traceparent } from '../../base/telemetry/trace.ts';
import { agentPort, type AgentInit, controlTokenHeader, controlTokenTaken } from '../../protocol/agent.ts';
import type { NetworkNamespace } from '../native/netns.ts';
import { dial } from '../network/dial.ts';
import type { AgentOutcome } from './response.ts';
import { requestOnce } from './stream.ts';

/** For the connection, and then for the answer. Milliseconds. */
const timeoutMs = 10_000;
const refusalCharactersMax = 300;

/** Settings older than those of an agent that has none: it changes nothing, and has read by then what real ones say. */
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
 * Has the agent of a standby sandbox pass over settings, on the connected socket `fd`, which is closed in the end.
 * What it runs for the first time takes it a millisecond longer, which nobody waits for yet. Errors: `internal`
 * where it does not answer.
 */
export async function warmAgent(fd: number, controlToken: string): Promise<void> {
  await sendInit(fd, controlToken, Buffer.from(JSON.stringify(pastSettings)));
}

/**
 * Gives the agent its settings. They are in force when this resolves, to the control token that the agent goes by then:
 * an agent of old keeps its first one. Errors: `internal` where it refuses or does not answer.
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
  // Nothing that it says with a 200 is of use.
  const onData = () => 'enough' as const;
  const request = { method: 'POST', path: '/init', fields, body } as const;
  return requestOnce(fd, request, { onData, timeoutMs }).catch((error: unknown) => {
    throw error instanceof AtollError ? new AtollError('internal', error.message, { cause: error }) : error;
  });
}
