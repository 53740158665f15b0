import { AtollError } from '../base/error.ts';
import { newUuid } from '../base/id.ts';
import type { BlobStore } from '../protocol/blob.ts';

const presignSeconds = 60;
const timeoutMs = 15_000;

/**
 * Tries out whether a store can be used: writes, reads, lists and removes an object, also by URLs where the store has
 * them. Errors: those of `BlobStore`.
 */
export async function checkStore(store: BlobStore): Promise<void> {
  const key = `check/${newUuid()}`;
  const bytes = new TextEncoder().encode(key);
  const soon = AbortSignal.timeout(timeoutMs);
  const late = new Promise<never>((_, reject) => {
    soon.addEventListener('abort', () =>
      reject(
        new AtollError('unavailable', `The store ${store.place} does not answer`, { detail: 'store_unavailable' }),
      ),
    );
  });
  await Promise.race([tryOut(store, key, bytes), late]);
}

async function tryOut(store: BlobStore, key: string, bytes: Uint8Array): Promise<void> {
  await store.put(key, bytes);
  try {
    if (Buffer.compare(await store.get(key), bytes) !== 0 || (await store.head(key)) !== bytes.length)
      throw new AtollError('precondition', `The store ${store.place} answers something else than was written`);
    if (!store.presign) return;
    const answer = await fetch(store.presign(key, 'GET', presignSeconds), { redirect: 'error' }).catch(() => null);
    if (answer?.status !== 200)
      throw new AtollError(
        'precondition',
        `The store ${store.place} refuses signed URLs${answer ? ` (${answer.status})` : ''}: machines read by them`,
        { detail: 'store_refused' },
      );
  } finally {
    await store.remove(key);
  }
}
