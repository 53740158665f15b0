import type { BlobStore } from '../protocol/blob.ts';
import { directoryStore } from './directory.ts';
import { s3Store, type S3Place } from './s3.ts';

/** Which store a cluster has. */
export type StorePlace = { kind: 'directory'; path: string } | ({ kind: 's3' } & S3Place);

/** Opens a store; nothing is asked of it yet. `shownAt`: where this process sees the directory. */
export function openBlobStore(place: StorePlace, shownAt?: string): BlobStore {
  return place.kind === 's3' ? s3Store(place) : directoryStore(shownAt ?? place.path, place.path);
}
