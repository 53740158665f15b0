import { ApiFailure } from '../../api/client.ts';
import { streamAgent } from '../../api/agent.ts';
import type { Target } from '../../api/agent.ts';
import { bytesOf } from '../../parts/base64.ts';

type ProcessEvent = {
  event?: { data?: { stdout?: string; stderr?: string }; end?: { exitCode?: number; status?: string } };
};

/** Limit of a program's output, which is kept in the page's memory, bytes. */
const outputBytesMax = 256 * 1024 ** 2;
/** Limit of the reason shown for a program's failure, characters. */
const reasonCharactersMax = 300;

/** Whether an exit code other than zero is no failure, judged by the code and the output. */
type IsFine = (exitCode: number, said: string) => boolean;

/**
 * Whether a tar is complete: 1 with such words says that something was written or removed while it was read. Other
 * programs of that name exit with 1 for a failure.
 */
export const isTarFine: IsFine = (exitCode, said) =>
  exitCode === 1 && /file (changed as|removed before) we read it/i.test(said);

/**
 * Runs a program in a sandbox and answers its output. Throws `ApiFailure` in the program's words if it fails. Once
 * `signal` aborts, nobody waits for it any more.
 */
export async function runProgram(
  target: Target,
  cmd: string,
  args: string[],
  { isFine = () => false, signal }: { isFine?: IsFine; signal?: AbortSignal } = {},
): Promise<Uint8Array<ArrayBuffer>[]> {
  const stop = new AbortController();
  const output: Uint8Array<ArrayBuffer>[] = [];
  let [bytes, reason] = [0, ''];
  try {
    for await (const { event } of streamAgent<ProcessEvent>(
      target,
      'process.Process/Start',
      { process: { cmd, args } },
      signal ? AbortSignal.any([stop.signal, signal]) : stop.signal,
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
      const exitCode = event?.end?.exitCode ?? 0;
      if (event?.end && exitCode !== 0 && !isFine(exitCode, reason))
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
