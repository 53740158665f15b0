/** What a request may send as bytes. */
export type Bytes = string | Uint8Array<ArrayBuffer> | ArrayBuffer | Blob | ReadableStream<Uint8Array>;
