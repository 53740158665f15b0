import { ApiFailure } from '../api/client.ts';
import { nameOf } from './paths.ts';
import type { FileStore } from './store.ts';

/** Larger files go through memory here; a program takes them better. */
const downloadBytesMax = 1024 ** 3;

/** Has the browser keep a file, as bytes that no page is made of. Throws `ApiFailure`. */
export async function downloadFile(store: FileStore, path: string): Promise<void> {
  const response = await store.read(path);
  if (Number(response.headers.get('content-length') ?? 0) > downloadBytesMax) {
    await response.body?.cancel();
    throw new ApiFailure(0, 'Larger than 1 GiB: read it by an SDK, as a stream');
  }
  const url = URL.createObjectURL(new Blob([await response.arrayBuffer()], { type: 'application/octet-stream' }));
  Object.assign(document.createElement('a'), { href: url, download: nameOf(path) }).click();
  URL.revokeObjectURL(url);
}
