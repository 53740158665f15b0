import { boundedParts } from '../api/bounded.ts';
import { ApiFailure } from '../api/client.ts';
import { nameOf } from './paths.ts';
import type { FileStore } from './store.ts';

/** Downloads go through this page's memory; larger files are better fetched by a program. */
const downloadBytesMax = 1024 ** 3;

/** Makes the browser save a file, as bytes that never become a page. Throws `ApiFailure`. */
export async function downloadFile(store: FileStore, path: string): Promise<void> {
  const response = await store.read(path);
  const isLarge = Number(response.headers.get('content-length') ?? 0) > downloadBytesMax;
  if (isLarge) await response.body?.cancel();
  const parts = isLarge ? null : await boundedParts(response, downloadBytesMax);
  if (!parts) throw new ApiFailure(0, 'Larger than 1 GiB: read it by an SDK, as a stream');
  keep(nameOf(path), new Blob(parts, { type: 'application/octet-stream' }));
}

/** Makes the browser save a whole folder, as a compressed tar. Throws `ApiFailure`. */
export async function downloadFolder(store: FileStore, path: string): Promise<void> {
  if (store.archive) keep(`${nameOf(path)}.tar.gz`, await store.archive(path));
}

function keep(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  Object.assign(document.createElement('a'), { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}
