import { agentPort, controlTokenHeader, type AgentInit } from '../protocol/agent.ts';
import { AtollError, messageOf } from '../base/error.ts';
import { traceparent } from '../base/trace.ts';
import { createHttpReader } from './agent-http.ts';
import { dial } from './network/dial.ts';
import type { NetworkNamespace } from './native/netns.ts';

const answerBytesMax = 64 << 10;
const agentStartTimeoutMs = 10_000;
/** Starting takes the agent some ms: looking sooner and more often would take them from it. */
const agentPollMs = { first: 6, next: 2 } as const;
const callTimeoutMs = 10_000;

/** Waits until the agent in a blank sandbox accepts connections. `ended` settles when the sandbox dies first. */
export async function agentListens(namespace: NetworkNamespace, ended: Promise<void>): Promise<void> {
  let dead = false;
  void ended.then(() => (dead = true));
  const deadline = performance.now() + agentStartTimeoutMs;
  await Bun.sleep(agentPollMs.first);
  for (;;) {
    const { fd, progress } = namespace.connect(namespace.targets[0], agentPort);
    const connected = progress() === 'connected';
    namespace.closeSocket(fd);
    if (connected) return;
    if (dead) throw new AtollError('internal', 'the sandbox ended before its agent listened');
    if (performance.now() > deadline) throw new AtollError('internal', 'the agent in the sandbox did not start in time');
    await Bun.sleep(agentPollMs.next);
  }
}

/** Gives the agent its settings. They are in force when this resolves. */
export async function initAgent(namespace: NetworkNamespace, controlToken: string, init: AgentInit): Promise<void> {
  const { status, body } = await request(namespace, 'POST', '/init', { [controlTokenHeader]: controlToken }, JSON.stringify(init));
  if (status !== 204) throw new AtollError('internal', `the agent refused its settings: ${body.slice(0, 300)}`);
}

type Answer = { status: number; body: string };

/**
 * One HTTP/1.1 request to the agent on a connection of its own. The agent runs among strangers: its answer is bounded,
 * and nothing in it is trusted but to be the answer.
 */
async function request(namespace: NetworkNamespace, method: string, path: string, headers: Record<string, string>, body: string): Promise<Answer> {
  const fd = await dial(namespace, agentPort, AbortSignal.timeout(callTimeoutMs));
  const answer = Promise.withResolvers<void>();
  const parts: Uint8Array[] = [];
  let bodyBytes = 0;
  const reader = createHttpReader(part => {
    bodyBytes += part.length;
    if (bodyBytes > answerBytesMax) throw new AtollError('internal', 'the answer of the agent is too long');
    parts.push(Buffer.from(part));
  });
  const timer = setTimeout(() => answer.reject(new AtollError('internal', 'the agent did not answer in time')), callTimeoutMs);
  const parent = traceparent();
  const traceHeader = parent === undefined ? {} : { traceparent: parent };
  const fields = { host: 'agent', connection: 'close', 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...traceHeader, ...headers };
  const lines = Object.entries(fields);
  let unsent: Uint8Array = Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`);
  const send = (socket: { write(data: Uint8Array): number }) => (unsent = unsent.subarray(Math.max(socket.write(unsent), 0)));
  const socket = await Bun.connect({
    fd,
    socket: {
      open: send,
      drain: send,
      data(_: unknown, bytes: Buffer) {
        try {
          reader.take(bytes);
          if (reader.isOver()) answer.resolve();
        } catch (error) {
          answer.reject(error);
        }
      },
      close: () => answer.resolve(),
      error: (_: unknown, error: Error) => answer.reject(error),
    },
  } as unknown as Parameters<typeof Bun.connect>[0]);
  try {
    await answer.promise;
    const status = reader.status();
    if (status === undefined) throw new AtollError('internal', 'the agent closed the connection without an answer');
    return { status, body: reader.failure() ?? Buffer.concat(parts).toString() };
  } catch (error) {
    throw error instanceof AtollError ? error : new AtollError('internal', `the agent can't be reached: ${messageOf(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
    socket.terminate();
  }
}
