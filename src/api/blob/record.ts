import type { PauseFacts } from '../../protocol/cluster.ts';

/** What is kept in the store of a cluster. */
export type BlobKind = 'layer' | 'pause';

/**
 * `uploading`: not all of it is there. `deleting`: nobody refers to it any more, nor will. `gone`: of a pause, it was
 * there once; kept for a while to tell what a machine still has of it from what nobody knows.
 */
export type BlobState = 'uploading' | 'stored' | 'deleting' | 'gone';

/** What needs a blob: a build its layers; a paused execution its layers and what it has kept. */
export type BlobOwner = { kind: 'build' | 'execution'; id: string };

/** A blob, as its row says. */
export type BlobRecord = {
  blobId: string;
  kind: BlobKind;
  /** Digest of a layer, execution ID of a pause. */
  name: string;
  state: BlobState;
  bytes: number;
  sealedKey: string | null;
  facts: PauseFacts | null;
  changedAtUs: number;
};
