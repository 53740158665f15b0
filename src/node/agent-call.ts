import { agentPort, controlTokenHeader, type AgentInit } from '../protocol/agent.ts';
import { AtollError, messageOf } from '../base/error.ts';
import { traceparent } from '../base/trace.ts';
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
  if (status !== 204) throw new AtollError('internal', `the agent refused its settings: ${status} ${body.slice(0, 200)}`);
}

type Answer = { status: number; body: string };

/**
 * One HTTP/1.1 request to the agent on a connection of its own. The agent runs among strangers: its answer is bounded,
 * and nothing in it is trusted but to be the answer.
 */
async function request(namespace: NetworkNamespace, method: string, path: string, headers: Record<string, string>, body: string): Promise<Answer> {
  const fd = await dial(namespace, agentPort, AbortSignal.timeout(callTimeoutMs));
  const answer = Promise.withResolvers<string>();
  const timer = setTimeout(() => answer.reject(new AtollError('internal', 'the agent did not answer in time')), callTimeoutMs);
  let text = '';
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
        text += bytes.toString('latin1');
        if (text.length > answerBytesMax) answer.reject(new AtollError('internal', 'the answer of the agent is too long'));
        else if (isComplete(text)) answer.resolve(text);
      },
      close: () => answer.resolve(text),
      error: (_: unknown, error: Error) => answer.reject(error),
    },
  } as unknown as Parameters<typeof Bun.connect>[0]);
  try {
    return parse(await answer.promise);
  } catch (error) {
    throw error instanceof AtollError ? error : new AtollError('internal', `the agent can't be reached: ${messageOf(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
    socket.terminate();
  }
}

function isComplete(text: string): boolean {
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return false;
  if (/^HTTP\/1\.[01] 204/.test(text)) return true;
  const length = /\r\ncontent-length: *(\d+)\r\n/i.exec(text.slice(0, head + 2))?.[1];
  return length !== undefined && text.length >= head + 4 + Number(length);
}

function parse(text: string): Answer {
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1];
  if (!status) throw new AtollError('internal', 'the agent closed the connection without an answer');
  return { status: Number(status), body: text.slice(text.indexOf('\r\n\r\n') + 4) };
}
