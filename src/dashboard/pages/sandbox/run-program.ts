import { ApiFailure } from '../../api/client.ts';
import { streamAgent } from '../../api/agent.ts';
import type { Target } from '../../api/agent.ts';
import { bytesOf } from '../../parts/base64.ts';

type ProcessEvent = {
  event?: { data?: { stdout?: string; stderr?: string }; end?: { exitCode?: number; status?: string } };
};

/** What a program says is kept in memory here, bytes. */
const outputBytesMax = 256 * 1024 ** 2;
/** What is told of why a program failed, characters. */
const reasonCharactersMax = 300;

/** Runs a program in a sandbox, and answers what it has written. Throws `ApiFailure` in its words where it fails. */
export async function runProgram(target: Target, cmd: string, args: string[]): Promise<Uint8Array<ArrayBuffer>[]> {
  const stop = new AbortController();
  const output: Uint8Array<ArrayBuffer>[] = [];
  let [bytes, reason] = [0, ''];
  try {
    for await (const { event } of streamAgent<ProcessEvent>(
      target,
      'process.Process/Start',
      { process: { cmd, args } },
      stop.signal,
    )) {
      const { stdout, stderr } = event?.data ?? {};
      if (stderr !== undefined && reason.length < reasonCharactersMax)
        reason += new TextDecoder().decode(bytesOf(stderr));
      if (stdout !== undefined) {
        const part = bytesOf(stdout);
        bytes += part.length;
        if (bytes > outputBytesMax) throw new ApiFailure(0, 'Larger than 256 MiB: read it by an SDK');
        output.push(part);
      }
      if (event?.end && (event.end.exitCode ?? 0) !== 0)
        throw new ApiFailure(
          0,
          reason.slice(0, reasonCharactersMax).trim() || `${cmd}: ${event.end.status ?? 'failed'}`,
        );
    }
  } finally {
    stop.abort();
  }
  return output;
}
