import { AtollError, messageOf } from '../base/error.ts';
import { agentPort } from '../protocol/agent.ts';
import { createHttpReader } from './agent-http.ts';
import { readProcessMessage } from './agent-message.ts';
import type { NetworkNamespace } from './native/netns.ts';
import { dial } from './network/dial.ts';

export type AgentProcess = {
  argv: [string, ...string[]];
  /** Absent: the sandbox's default user. */
  user?: string;
  env: Record<string, string>;
  /** Empty: the default working directory. */
  cwd: string;
  /** After this time the process is killed; 0: never. */
  timeoutMs: number;
  /** Of a secured sandbox. */
  accessToken?: string;
  /** Called when the process runs. From then on it does not need the connection. */
  onStart?(): void;
  signal?: AbortSignal;
};

export type ProcessEnd = {
  /** -1 where a signal ended it. */
  exitCode: number;
  /** Of the form `exit status 1` or `signal: killed`. */
  status: string;
};

/** Takes what the process writes, as it comes. */
export type OnOutput = (stream: 'stdout' | 'stderr', bytes: Uint8Array) => void;

const messageBytesMax = 1 << 20;
const endOfStream = 2;

/**
 * Runs a program in a sandbox through its agent and answers how it ended.
 * Errors: `invalid` or `unauthenticated` where the agent refuses it (the message is the agent's), `deadline_exceeded`,
 * `unavailable` when the sandbox ends meanwhile.
 */
export async function runInSandbox(namespace: NetworkNamespace, process: AgentProcess, onOutput: OnOutput): Promise<ProcessEnd> {
  process.signal?.throwIfAborted();
  return runByAgent(await dial(namespace, agentPort, process.signal), process, onOutput);
}

/** As `runInSandbox`, on a connection to the agent. The descriptor is closed in the end. */
export async function runByAgent(fd: number, process: AgentProcess, onOutput: OnOutput): Promise<ProcessEnd> {
  const { signal } = process;
  const ended = Promise.withResolvers<ProcessEnd>();
  let end: ProcessEnd | undefined;

  const takeMessage = (flags: number, payload: Buffer) => {
    const message = readProcessMessage(payload);
    if (message.hasStarted) process.onStart?.();
    if (message.stdout) onOutput('stdout', message.stdout);
    if (message.stderr) onOutput('stderr', message.stderr);
    if (message.end) end = message.end;
    if (flags & endOfStream) {
      if (message.error) ended.reject(message.error);
      else if (end) ended.resolve(end);
      else ended.reject(new AtollError('internal', 'the agent did not say how the process ended'));
    }
  };
  const reader = createHttpReader(createMessageReader(takeMessage));

  let unsent = requestOf(process);
  const send = (socket: { write(data: Uint8Array): number }) => (unsent = unsent.subarray(Math.max(socket.write(unsent), 0)));
  const socket = await Bun.connect({
    fd,
    socket: {
      open: send,
      drain: send,
      data(_: unknown, bytes: Buffer) {
        try {
          reader.take(bytes);
        } catch (error) {
          ended.reject(error);
        }
      },
      close: () => ended.reject(new AtollError('unavailable', reader.failure() ?? 'the sandbox ended while the command ran')),
      error: (_: unknown, error: Error) => ended.reject(new AtollError('unavailable', messageOf(error))),
    },
  } as unknown as Parameters<typeof Bun.connect>[0]);
  const abort = () => ended.reject(signal?.reason);
  signal?.addEventListener('abort', abort, { once: true });
  try {
    return await ended.promise;
  } finally {
    signal?.removeEventListener('abort', abort);
    socket.terminate();
  }
}

/** Makes messages of parts (connectrpc.com, "Enveloped messages"). However small the parts are, each byte is copied once. */
export function createMessageReader(onMessage: (flags: number, payload: Buffer) => void): (part: Uint8Array) => void {
  const head = Buffer.alloc(5);
  let headBytes = 0;
  let payload: Buffer | undefined;
  let payloadBytes = 0;
  return part => {
    for (let at = 0; at < part.length || payload?.length === payloadBytes; ) {
      if (!payload) {
        const piece = part.subarray(at, at + head.length - headBytes);
        head.set(piece, headBytes);
        at += piece.length;
        headBytes += piece.length;
        if (headBytes < head.length) return;
        if (head.readUInt32BE(1) > messageBytesMax) throw new AtollError('internal', 'the agent sent too long a message');
        payload = Buffer.alloc(head.readUInt32BE(1));
        payloadBytes = 0;
      }
      const piece = part.subarray(at, at + payload.length - payloadBytes);
      payload.set(piece, payloadBytes);
      at += piece.length;
      payloadBytes += piece.length;
      if (payloadBytes < payload.length) return;
      const whole = payload;
      payload = undefined;
      headBytes = 0;
      onMessage(head[0] ?? 0, whole);
    }
  };
}

function requestOf({ argv, user, env, cwd, timeoutMs, accessToken }: AgentProcess): Uint8Array {
  const [cmd, ...args] = argv;
  const message = Buffer.from(JSON.stringify({ process: { cmd, args, envs: env, ...(cwd && { cwd }) }, stdin: false }));
  const envelope = Buffer.alloc(5 + message.length);
  envelope.writeUInt32BE(message.length, 1);
  message.copy(envelope, 5);
  const headers = {
    host: 'agent',
    connection: 'close',
    'content-type': 'application/connect+json',
    'connect-protocol-version': '1',
    ...(timeoutMs > 0 && { 'connect-timeout-ms': String(Math.ceil(timeoutMs)) }),
    'content-length': String(envelope.length),
    ...(accessToken !== undefined && { 'x-access-token': accessToken }),
    ...(user !== undefined && { authorization: `Basic ${Buffer.from(`${user}:`).toString('base64')}` }),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST /process.Process/Start HTTP/1.1\r\n${lines.join('')}\r\n`), envelope]);
}
