import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import type { LayerJob, LayerMade } from '../../protocol/builder.ts';
import type { NodeContext } from '../context.ts';

/** Files up to this size are hashed here: starting a process takes longer. */
const hashedHereBytesMax = 2 << 20;

export type MakeLayerOptions = {
  job: LayerJob;
  /** What the job is shown, as paths of the helper's mount namespace. */
  view?: string;
  from?: string;
  upper?: string;
  /** A file with the archive that the job reads. */
  archive?: string;
  signal?: AbortSignal;
};

type Maker = Pick<NodeContext, 'builder' | 'layers' | 'space'>;

/** Makes a layer by a builder and answers its digest, or null where it would hold nothing. Errors: those of the job. */
export function makeLayer(node: Maker, { job, view, from, upper, archive, signal }: MakeLayerOptions): Promise<string | null> {
  node.space.require('a layer');
  const whileRoom = signal ? AbortSignal.any([signal, node.space.signal()]) : node.space.signal();
  return node.layers.make(async image => {
    const made = await node.builder.run<LayerMade>({
      job,
      shows: { ...(view !== undefined && { view }), ...(from !== undefined && { from }), ...(upper !== undefined && { upper }) },
      ...(job.kind === 'seal' && job.marked && upper !== undefined && { marksOf: upper }),
      ...(archive !== undefined && { input: archive }),
      output: image,
      signal: whileRoom,
    });
    // Whoever reads what strangers wrote does not say what a layer is called: that is what others find it by.
    return made === null ? null : await digestOfFile(node, image, signal);
  });
}

/** SHA-256 of a file, as `sha256:<hex>`. */
export async function digestOfFile({ builder }: Pick<NodeContext, 'builder'>, path: string, signal?: AbortSignal): Promise<string> {
  if ((await stat(path)).size > hashedHereBytesMax) return builder.run<string>({ job: { kind: 'digest' }, input: path, ...(signal && { signal }) });
  return `sha256:${createHash('sha256').update(await readFile(path)).digest('hex')}`;
}
