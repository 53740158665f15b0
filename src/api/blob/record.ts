import type { PauseFacts } from '../../protocol/cluster.ts';

/** The kinds of things in the store of a cluster. */
export const blobKinds = ['layer', 'pause', 'snapshot', 'upload', 'log', 'volume'] as const;
export type BlobKind = (typeof blobKinds)[number];

/**
 * `uploading`: not complete yet. `deleting`: nothing refers to it, or ever will. `gone`: a pause that was there once
 * or, with no bytes, was taken back. That is recorded for a while to tell what a machine still has of it from what
 * nobody knows.
 */
export type BlobState = 'uploading' | 'stored' | 'deleting' | 'gone';

/**
 * What needs a blob: a build needs its layers and its memory; a paused execution its layers and what it has kept; a
 * volume its newest copy, by the copy's name. Nothing needs an upload or a log: they stay as long as they are used.
 */
export type BlobOwner = { kind: 'build' | 'execution' | 'volume'; id: string };

/** A blob, as in its row. */
export type BlobRecord = {
  blobId: string;
  kind: BlobKind;
  /**
   * The digest of a layer, execution ID of a pause, ID of a snapshot, sandbox ID of a log, team and hash of an upload;
   * a volume's copy has a UUID of its own.
   */
  name: string;
  state: BlobState;
  bytes: number;
  sealedKey: string | null;
  facts: PauseFacts | null;
  changedAtUs: number;
};
