type LongCommand = {
  url: string;
  /** Headers by which the edge and the sandbox's agent know who asks. */
  headers: Record<string, string>;
  command: string;
  user: string;
  /** For a terminal; without it, pipes are used. */
  pty?: { size: { rows: number; cols: number } };
};

type LongProcess = LongCommand & {
  signal: AbortSignal;
  /** Called for each piece of its event stream. */
  onBytes?(count: number): void;
};

/** Starts a command and reads its output as long as the command and its sandbox exist, or until somebody aborts it. */
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
    // It ends with its sandbox, or because the caller wants it to.
  }
}

/**
 * The same in a separate process, which ends with `signal`: the cost of reading is not taken from those who measure.
 * The process has its own session, and so its own share of the processors (autogroup, sched(7)).
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
