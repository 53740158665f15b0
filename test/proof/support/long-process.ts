type LongCommand = {
  url: string;
  /** By which the edge and the agent of the sandbox know who asks. */
  headers: Record<string, string>;
  command: string;
  user: string;
  /** Of a terminal; without it there are pipes. */
  pty?: { size: { rows: number; cols: number } };
};

type LongProcess = LongCommand & {
  signal: AbortSignal;
  /** Of each piece of the stream of its events. */
  onBytes?(count: number): void;
};

/** Starts a command and reads what it says for as long as it and its sandbox are there, or nobody aborts it. */
export async function runLong({ url, headers, command, user, pty, signal, onBytes }: LongProcess) {
  const process = { cmd: '/bin/sh', args: ['-c', command] };
  const message = Buffer.from(JSON.stringify({ process, stdin: false, ...(pty ? { pty } : {}) }));
  const envelope = Buffer.concat([Buffer.alloc(5), message]);
  envelope.writeUInt32BE(message.length, 1);
  try {
    const answer = await fetch(`${url}/process.Process/Start`, {
      method: 'POST',
      headers: {
        ...headers,
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

/**
 * The same by a process of its own, which is ended with `signal`: what it takes to read is not taken from those who
 * measure. It has a session, and with that a share of the processors, of its own (autogroup, sched(7)).
 */
export async function runLongOutside({ signal, ...long }: LongCommand & { signal: AbortSignal }): Promise<void> {
  const child = Bun.spawn([process.execPath, import.meta.path], {
    stdin: Buffer.from(JSON.stringify(long)),
    signal,
    detached: true,
  });
  await child.exited;
}

if (import.meta.main)
  await runLong({ ...((await Bun.stdin.json()) as LongCommand), signal: new AbortController().signal });
