/** An object of a blob store, as a list shows it. */
export type BlobObject = { key: string; bytes: number; changedAtMs: number };

/**
 * Where a cluster keeps what must outlive its machines: named objects of at most `partBytes` each. The store promises
 * nothing across objects: the rows of the database say which objects count.
 *
 * Errors of every call: `precondition` (the store refuses the keys, or the bucket or directory does not exist: nothing
 * changes until an operator acts), `no_space`, `unavailable` (out of reach now). None of them holds a key or a signed
 * URL.
 */
export type BlobStore = {
  /** Names the store for operators, without a key. */
  readonly place: string;
  /** Writes an object whole. */
  put(key: string, bytes: Uint8Array): Promise<void>;
  /** Reads an object. Errors: `not_found`. */
  get(key: string): Promise<Uint8Array>;
  /** Size of an object in bytes; null where there is none. */
  head(key: string): Promise<number | null>;
  /** Removes an object. Succeeds where there is none. */
  remove(key: string): Promise<void>;
  /** The objects whose keys start with `prefix`. */
  list(prefix: string): AsyncIterable<BlobObject>;
  /** URLs by which others read or write one object each for a limited time; null where only this process can. */
  readonly presign: ((key: string, method: 'GET' | 'PUT', seconds: number) => string) | null;
};

/** Bytes of each object of a blob, except the last: this is what is sent again when a connection breaks. */
export const partBytes = 16 << 20;

/** The number of objects that hold a blob of `bytes` bytes. An empty blob is one empty object. */
export const partsOf = (bytes: number): number => Math.max(1, Math.ceil(bytes / partBytes));
