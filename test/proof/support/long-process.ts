import type { Client, Sandbox } from '../../../bench/platform/client.ts';

type LongProcess = {
  url: string;
  client: Client;
  sandbox: Sandbox;
  command: string;
  user: string;
  /** Of a terminal; without it there are pipes. */
  pty?: { size: { rows: number; cols: number } };
  signal: AbortSignal;
  /** Of each piece of the stream of its events. */
  onBytes?(count: number): void;
};

/** Starts a command and reads what it says for as long as it and its sandbox are there, or nobody aborts it. */
export async function runLong({ url, client, sandbox, command, user, pty, signal, onBytes }: LongProcess) {
  const process = { cmd: '/bin/sh', args: ['-c', command] };
  const message = Buffer.from(JSON.stringify({ process, stdin: false, ...(pty ? { pty } : {}) }));
  const envelope = Buffer.concat([Buffer.alloc(5), message]);
  envelope.writeUInt32BE(message.length, 1);
  try {
    const answer = await fetch(`${url}/process.Process/Start`, {
      method: 'POST',
      headers: {
        ...client.toAgent(sandbox),
        'content-type': 'application/connect+json',
        'connect-protocol-version': '1',
        authorization: `Basic ${Buffer.from(`${user}:`).toString('base64')}`,
      },
      body: envelope,
      signal,
    });
    for await (const piece of answer.body ?? []) onBytes?.(piece.length);
  } catch {
    // Its end is the end of its sandbox, or the caller's wish.
  }
}
