import { createMessageReader, endOfStream, envelopeOf } from '../../base/envelopes.ts';
import { AtollError } from '../../base/error.ts';
import { parseJson } from '../../base/json-text.ts';
import { readProcessMessage } from '../../protocol/process-message.ts';
import { signalOf } from '../../base/process/signal-text.ts';
import type { AgentWay } from './open.ts';

/** How often the agent says that it is there, seconds: nothing on the way is as impatient. */
const pingSeconds = 50;

/** A line for a shell, and whose it is and where. Without a user and a directory they are the template's. */
export type Inside = { line: string; envs: Record<string, string>; user: string | undefined; cwd: string | undefined };

/** What is told of a command while it runs. */
export type Told = { onStart(pid: number): void; onStdout(bytes: Uint8Array): void; onStderr(bytes: Uint8Array): void };

/**
 * Runs a command inside as the published client does, whose output is text: here it is what the command has written.
 * Answers its exit code; 128 and the signal's number as shells have it. Errors: what the agent says; `unavailable`
 * where the connection broke off; the reason of `signal`, after which it runs on inside.
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

/** What the installation says in place of a sandbox that it can't reach. */
async function refusalOf(response: Response): Promise<AtollError> {
  const { message } = (parseJson(await response.text()) ?? {}) as { message?: unknown };
  return new AtollError(
    'unavailable',
    typeof message === 'string' ? message : `The sandbox answers ${response.status}.`,
  );
}

/** The agent tells of a signal in words, and gives no exit code then. */
function exitCodeOf({ exitCode, status }: { exitCode: number; status: string }): number {
  const signal = signalOf(status);
  return signal === undefined ? exitCode : 128 + signal;
}

const brokenOff = (cause?: unknown) =>
  new AtollError('unavailable', 'The connection to the sandbox broke off before the command had ended.', { cause });
