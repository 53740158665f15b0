import type { PauseFacts } from '../../protocol/cluster.ts';

/** What is kept in the store of a cluster. */
export const blobKinds = ['layer', 'pause', 'snapshot', 'upload', 'log', 'volume'] as const;
export type BlobKind = (typeof blobKinds)[number];

/**
 * `uploading`: not all of it is there. `deleting`: nobody refers to it any more, nor will. `gone`: of a pause, it was
 * there once, or, with no bytes, was taken back; kept for a while to tell what a machine still has of it from what
 * nobody knows.
 */
export type BlobState = 'uploading' | 'stored' | 'deleting' | 'gone';

/**
 * What needs a blob: a build its layers and its memory; a paused execution its layers and what it has kept; a
 * volume its newest copy, by the name of that. Nobody needs an upload or a log: it stays for as long as it is used.
 */
export type BlobOwner = { kind: 'build' | 'execution' | 'volume'; id: string };

/** A blob, as its row says. */
export type BlobRecord = {
  blobId: string;
  kind: BlobKind;
  /**
   * Digest of a layer, execution ID of a pause, ID of a snapshot, sandbox ID of a log, team and hash of an upload,
   * a UUID of its own of the copy of a volume.
   */
  name: string;
  state: BlobState;
  bytes: number;
  sealedKey: string | null;
  facts: PauseFacts | null;
  changedAtUs: number;
};
