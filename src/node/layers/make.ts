import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import type { LayerJob } from '../../protocol/builder.ts';
import type { Builder } from '../builder/builder.ts';
import type { Layers } from './store.ts';

/** Files up to this size are hashed in this process: starting another one takes longer. */
const hashedHereBytesMax = 2 << 20;

/** One layer to be made. */
type MakeLayerOptions = {
  job: LayerJob;
  /** What the job is shown, as paths of the helper's mount namespace. */
  view?: string;
  from?: string;
  upper?: string;
  /** A file with the archive that the job reads. */
  archive?: string;
  signal?: AbortSignal;
};

/** What making layers needs. */
export type LayerMaker = {
  builder: Pick<Builder, 'run'>;
  layers: Pick<Layers, 'make'>;
  /** The room on the node's disk: checked before, and aborts the work if it runs out meanwhile. Errors: `no_space`. */
  space: { require(what: string, bytes?: number): void; signal(): AbortSignal };
};

/** Makes a layer by a builder and answers its digest, or null if it would be empty. Errors: those of the job. */
export function makeLayer(
  { builder, layers, space }: LayerMaker,
  { job, view, from, upper, archive, signal }: MakeLayerOptions,
): Promise<string | null> {
  space.require('a layer');
  const whileRoom = signal ? AbortSignal.any([signal, space.signal()]) : space.signal();
  return layers.make(async image => {
    const made = await builder.run({
      job,
      shows: {
        ...(view !== undefined && { view }),
        ...(from !== undefined && { from }),
        ...(upper !== undefined && { upper }),
      },
      ...(job.kind === 'pack' && job.marked && upper !== undefined && { marksOf: upper }),
      ...(archive !== undefined && { input: archive }),
      output: image,
      signal: whileRoom,
    });
    // The process that reads strangers' files may not name the layer: others find the layer by its name.
    return made === null ? null : await digestOfFile(builder, image, signal);
  });
}

/** SHA-256 of a file, as `sha256:<hex>`. */
export async function digestOfFile(builder: Pick<Builder, 'run'>, path: string, signal?: AbortSignal): Promise<string> {
  if ((await stat(path)).size > hashedHereBytesMax)
    return builder.run({ job: { kind: 'digest' }, input: path, ...(signal && { signal }) });
  return `sha256:${createHash('sha256')
    .update(await readFile(path))
    .digest('hex')}`;
}
