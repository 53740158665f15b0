import { createMessageReader, endOfStream, envelopeOf } from '../../base/envelopes.ts';
import { AtollError } from '../../base/error.ts';
import { parseJson } from '../../base/json-text.ts';
import { readProcessMessage } from '../../protocol/process-message.ts';
import { signalOf } from '../../base/process/signal-text.ts';
import type { AgentWay } from './open.ts';

/** How often the agent shows that it is alive, seconds: nothing on the way times out sooner. */
const pingSeconds = 50;

/** A shell line, its user and its directory. Without a user and a directory, those of the template apply. */
export type Inside = { line: string; envs: Record<string, string>; user: string | undefined; cwd: string | undefined };

/** What a running command reports. */
export type Told = { onStart(pid: number): void; onStdout(bytes: Uint8Array): void; onStderr(bytes: Uint8Array): void };

/**
 * Runs a command inside as the published client does, except that the client's output is text, and this one is the
 * bytes that the command wrote. Answers its exit code, or 128 plus the signal's number as in shells. Errors: those of
 * the agent; `unavailable` if the connection broke off; the reason of `signal`, after which the command runs on inside.
 */
export async function runInside(
  { url, headers }: AgentWay,
  { line, envs, user, cwd }: Inside,
  told: Told,
  signal?: AbortSignal,
): Promise<number> {
  const process = { cmd: '/bin/bash', args: ['-l', '-c', line], envs, ...(cwd !== undefined && { cwd }) };
  let outcome: number | AtollError | undefined;
  const read = createMessageReader((flags, payload) => {
    const { pid, stdout, stderr, end, error } = readProcessMessage(payload);
    if (pid !== undefined) told.onStart(pid);
    if (stdout) told.onStdout(stdout);
    if (stderr) told.onStderr(stderr);
    if (end) outcome = exitCodeOf(end);
    if (flags & endOfStream && error) outcome ??= error;
  });
  try {
    const response = await fetch(`${url}/process.Process/Start`, {
      method: 'POST',
      headers: {
        ...headers,
        'Content-Type': 'application/connect+json',
        'Connect-Protocol-Version': '1',
        'Keepalive-Ping-Interval': String(pingSeconds),
        ...(user !== undefined && { Authorization: `Basic ${Buffer.from(`${user}:`).toString('base64')}` }),
      },
      body: envelopeOf(Buffer.from(JSON.stringify({ process, stdin: true }))),
      ...(signal && { signal }),
    });
    if (!response.ok) outcome = await refusalOf(response);
    else for await (const piece of response.body ?? []) read(piece);
  } catch (cause) {
    signal?.throwIfAborted();
    throw brokenOff(cause);
  }
  if (typeof outcome === 'number') return outcome;
  throw outcome ?? brokenOff();
}

/** The installation's words when it can't reach a sandbox. */
async function refusalOf(response: Response): Promise<AtollError> {
  const { message } = (parseJson(await response.text()) ?? {}) as { message?: unknown };
  return new AtollError(
    'unavailable',
    typeof message === 'string' ? message : `The sandbox answers ${response.status}.`,
  );
}

/** The agent reports a signal in words, without an exit code. */
function exitCodeOf({ exitCode, status }: { exitCode: number; status: string }): number {
  const signal = signalOf(status);
  return signal === undefined ? exitCode : 128 + signal;
}

const brokenOff = (cause?: unknown) =>
  new AtollError('unavailable', 'The connection to the sandbox broke off before the command had ended.', { cause });
