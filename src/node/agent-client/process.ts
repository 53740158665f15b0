import { AtollError } from '../../base/error.ts';
import { agentPort } from '../../protocol/agent.ts';
import { createMessageReader, endOfStream, envelopeOf } from '../../base/envelopes.ts';
import { readProcessMessage } from '../../protocol/process-message.ts';
import { createPace } from './pace.ts';
import { type AgentConnection, type AgentRequest, requestOnce } from './stream.ts';
import type { NetworkNamespace } from '../native/netns.ts';
import { dial } from '../network/dial.ts';

/** A program to run in a sandbox. */
export type AgentProcess = {
  argv: [string, ...string[]];
  /** Absent: the sandbox's default user. */
  user?: string;
  env: Record<string, string>;
  /** Empty: the default working directory. */
  cwd: string;
  /** The process is killed after this time; 0: never. */
  timeoutMs: number;
  /** Access token of a secured sandbox. */
  accessToken?: string;
  /** Called when the process runs. After that it does not need the connection. */
  onStart?(): void;
  signal?: AbortSignal;
};

/** How a program ended. */
export type ProcessEnd = {
  /** -1 if a signal ended it. */
  exitCode: number;
  /** The form is `exit status 1` or `signal: killed`. */
  status: string;
};

/** Takes what the process writes, as it comes. */
export type OnOutput = (stream: 'stdout' | 'stderr', bytes: Uint8Array) => void;

/**
 * Runs a program in a sandbox through its agent and answers how it ended. Errors: `invalid` or `unauthenticated` if
 * the agent refuses it (the message is the agent's), `deadline_exceeded`, `unavailable` if the sandbox ends meanwhile.
 */
export async function runInSandbox(
  namespace: NetworkNamespace,
  process: AgentProcess,
  onOutput: OnOutput,
): Promise<ProcessEnd> {
  process.signal?.throwIfAborted();
  return runByAgent(await dial(namespace, agentPort, process.signal), process, onOutput);
}

/** Like `runInSandbox`, on a connection to the agent. The descriptor is closed in the end. */
export async function runByAgent(fd: number, process: AgentProcess, onOutput: OnOutput): Promise<ProcessEnd> {
  let end: ProcessEnd | undefined;
  let outcome: ProcessEnd | AtollError | undefined;
  let messages = 0;
  let pieces = 0;
  let ms = 0;
  const takeMessage = (flags: number, payload: Buffer) => {
    messages++;
    const message = readProcessMessage(payload);
    if (message.hasStarted) process.onStart?.();
    if (message.stdout) onOutput('stdout', message.stdout);
    if (message.stderr) onOutput('stderr', message.stderr);
    if (message.end) end = message.end;
    if (!(flags & endOfStream)) return;
    outcome ??= message.error ?? end ?? new AtollError('internal', 'the agent did not say how the process ended');
  };
  const read = createMessageReader(takeMessage);
  const onData = (piece: Uint8Array) => {
    const began = performance.now();
    pieces++;
    read(piece);
    ms += performance.now() - began;
    return outcome === undefined ? 'more' : 'enough';
  };
  const pace = createPace();
  const afterBytes = (count: number, connection: AgentConnection) => {
    const waitMs = pace(count, messages, pieces, ms);
    messages = pieces = ms = 0;
    if (waitMs === 0 || outcome !== undefined) return;
    connection.pause();
    setTimeout(() => connection.resume(), waitMs).unref();
  };
  const { signal } = process;
  const { refusal } = await requestOnce(fd, requestOf(process), { onData, afterBytes, ...(signal && { signal }) });
  if (outcome instanceof AtollError) throw outcome;
  if (outcome === undefined) throw new AtollError('unavailable', refusal ?? 'the sandbox ended while the command ran');
  return outcome;
}

function requestOf({ argv, user, env, cwd, timeoutMs, accessToken }: AgentProcess): AgentRequest {
  const [cmd, ...args] = argv;
  const message = { process: { cmd, args, envs: env, ...(cwd && { cwd }) }, stdin: false };
  const headers = {
    Connection: 'close',
    'Content-Type': 'application/connect+json',
    'Connect-Protocol-Version': '1',
    ...(timeoutMs > 0 && { 'Connect-Timeout-Ms': String(Math.ceil(timeoutMs)) }),
    ...(accessToken !== undefined && { 'X-Access-Token': accessToken }),
    ...(user !== undefined && { Authorization: `Basic ${Buffer.from(`${user}:`).toString('base64')}` }),
  };
  return {
    method: 'POST',
    path: '/process.Process/Start',
    fields: Object.entries(headers).map(([name, value]) => ({ name, value })),
    body: envelopeOf(Buffer.from(JSON.stringify(message))),
  };
}
