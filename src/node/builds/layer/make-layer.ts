import { join } from 'node:path';
import { AtollError, statusOf, type ErrorCode } from '../../../base/error.ts';
import type { NodeContext } from '../../context.ts';
import type { ImageLimits } from '../erofs/writer.ts';
import type { LayerAnswer, LayerJob, LayerMade } from './job.ts';

const program = join(import.meta.dir, 'main.ts');
/** Longest time for one layer: reading and hashing its limit in bytes takes a fraction of that. */
const timeoutMs = 20 * 60_000;
const answerBytesMax = 64 << 10;

type Kind<T> = T extends LayerJob ? Omit<T, 'image' | 'limits'> : never;

export type MakeLayerOptions = {
  job: Kind<LayerJob>;
  limits: ImageLimits;
  /** A file with the archive that the job reads. */
  archive?: string;
  signal?: AbortSignal;
};

/** Makes a layer in a process of its own and answers its digest, or null where it would hold nothing. Errors: those of the job. */
export function makeLayer(node: NodeContext, { job, limits, archive, signal }: MakeLayerOptions): Promise<string | null> {
  return node.layers.make(async image => (await runProgram({ ...job, image, limits } as LayerJob, archive, signal))?.digest ?? null);
}

async function runProgram(job: LayerJob, archive: string | undefined, signal: AbortSignal | undefined): Promise<LayerMade> {
  signal?.throwIfAborted();
  const child = Bun.spawn([process.execPath, '--no-env-file', '--config=/dev/null', program, JSON.stringify(job)], {
    // The archives are strangers' and the platform's environment holds its secrets.
    env: {},
    stdin: archive === undefined ? 'ignore' : Bun.file(archive),
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
    ...(signal && { signal }),
  });
  const [text, complaint] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  signal?.throwIfAborted();
  if (text.length === 0 || text.length > answerBytesMax) {
    throw new AtollError('internal', `the layer could not be made: ${complaint.trim().slice(-500) || `signal ${child.signalCode}`}`);
  }
  const answer = JSON.parse(text) as LayerAnswer;
  if ('ok' in answer) return answer.ok;
  const code = answer.error.code in statusOf ? (answer.error.code as ErrorCode) : 'internal';
  throw new AtollError(code, answer.error.message);
}

/** One character for each byte, as the layer program wants it. */
export function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1');
}
