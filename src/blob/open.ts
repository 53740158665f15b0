import type { BlobStore } from '../protocol/blob.ts';
import { directoryStore } from './directory.ts';
import { s3Store, type S3Place } from './s3.ts';

/** The kind of store that a cluster has, and where it is. */
export type StorePlace = { kind: 'directory'; path: string } | ({ kind: 's3' } & S3Place);

/** Opens a store without calling it yet. `shownAt`: where this process sees the directory. */
export function openBlobStore(place: StorePlace, shownAt?: string): BlobStore {
  return place.kind === 's3' ? s3Store(place) : directoryStore(shownAt ?? place.path, place.path);
}
