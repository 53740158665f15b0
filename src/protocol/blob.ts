/** An object of a blob store, as a list shows it. */
export type BlobObject = { key: string; bytes: number; changedAtMs: number };

/**
 * Where a cluster keeps what has to outlive its machines: named objects of at most `partBytes` each. It promises
 * nothing about two objects: what there is, the rows of the database say.
 *
 * Errors of every call: `precondition` (it refuses the keys, there is no such bucket or directory: nothing changes
 * until an operator acts), `no_space`, `unavailable` (out of reach now). None of them holds a key or a signed URL.
 */
export type BlobStore = {
  /** What it is, for operators: without a key. */
  readonly place: string;
  /** Writes an object whole. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** The object. Errors: `not_found`. */
  get(key: string): Promise<Uint8Array>;
  /** Bytes of an object; null where there is none. */
  head(key: string): Promise<number | null>;
  /** One that is not there is removed already. */
  remove(key: string): Promise<void>;
  /** The objects whose keys begin so. */
  list(prefix: string): AsyncIterable<BlobObject>;
  /** URLs by which others read or write one object each for a while; null where only this process can. */
  readonly presign: ((key: string, method: 'GET' | 'PUT', seconds: number) => string) | null;
};

/** Bytes of each object that a blob is cut into, but for the last: what is sent again when a connection breaks. */
export const partBytes = 16 << 20;

/** How many objects a blob of so many bytes is. An empty one is one empty object. */
export const partsOf = (bytes: number): number => Math.max(1, Math.ceil(bytes / partBytes));
