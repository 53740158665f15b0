import { createHash } from 'node:crypto';
import { AtollError } from '../base/error.ts';
import { inPieces } from '../base/pieces.ts';
import { partBytes } from '../protocol/blob.ts';

/** Longest time for one part, milliseconds; lines slower than 280 KB/s are of no use. */
const partTimeoutMs = 60_000;
/** Waits between the attempts for a part, milliseconds; after the last attempt nothing more is tried. */
const retryMs = [500, 3_000];
/** Parts under way at a time. */
const atOnce = 3;

/**
 * Sends a stream in parts, each to its own URL, a few at a time. Errors: those of `BlobStore`, without a URL;
 * `unavailable` where the stream is shorter or longer than the number of URLs says.
 */
export async function sendParts(source: AsyncIterable<Uint8Array>, urls: readonly string[]): Promise<void> {
  const underWay = new Set<Promise<void>>();
  let failure: unknown;
  let number = 0;
  for await (const part of inPieces(source, partBytes)) {
    const url = urls[number++];
    if (url === undefined) throw new AtollError('unavailable', 'There is more to send than was said before');
    const sent: Promise<void> = put(url, part)
      .catch((error: unknown) => void (failure ??= error))
      .finally(() => underWay.delete(sent));
    underWay.add(sent);
    if (underWay.size >= atOnce) await Promise.race(underWay);
    if (failure !== undefined) break;
  }
  await Promise.all(underWay);
  if (failure !== undefined) throw failure;
  if (number !== urls.length) throw new AtollError('unavailable', 'There is less to send than was said before');
}

/**
 * Reads what is at the URLs, in their order, and fetches the next ones meanwhile. Errors: those of `BlobStore`,
 * `not_found`.
 */
export async function* receiveParts(urls: readonly string[]): AsyncGenerator<Uint8Array> {
  const coming: Promise<Uint8Array>[] = [];
  for (let next = 0; next < urls.length || coming.length > 0;) {
    while (coming.length < atOnce && next < urls.length) {
      const part = get(urls[next++] ?? '');
      part.catch(() => {}); // reported when the part's turn comes
      coming.push(part);
    }
    const part = await coming.shift();
    if (part) yield part;
  }
}

/**
 * While a part is tried again, its first attempt may still be under way and be cut off. A store must not replace the
 * whole part with those remains, so it is told the digest (RFC 1864) and refuses them.
 */
async function put(url: string, bytes: Uint8Array): Promise<void> {
  const headers = { 'Content-MD5': createHash('md5').update(bytes).digest('base64') };
  await attempt(url, { method: 'PUT', headers, body: bytes as Uint8Array<ArrayBuffer> }, async () => {});
}

function get(url: string): Promise<Uint8Array> {
  return attempt(url, { method: 'GET' }, answer => answer.bytes());
}

async function attempt<T>(url: string, request: RequestInit, read: (answer: Response) => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    let answer: Response | undefined;
    try {
      answer = await fetch(url, { ...request, redirect: 'error', signal: AbortSignal.timeout(partTimeoutMs) });
      if (answer.ok) return await read(answer);
    } catch {
      // The connection broke. The error's message may hold the URL, which works as a key for an hour.
    }
    const waitMs = retryMs[tries];
    const passes = !answer || answer.ok || answer.status >= 500 || answer.status === 429;
    if (waitMs === undefined || !passes || answer?.status === 507) throw refusal(answer, request.method === 'PUT');
    await Bun.sleep(waitMs);
  }
}

function refusal(answer: Response | undefined, isWrite: boolean): AtollError {
  // Some stores answer this to a key that they no longer know, and all of them when the bucket is gone.
  const isUnknown = isWrite && answer?.status === 404;
  if (answer?.status === 403 || answer?.status === 401 || isUnknown)
    return new AtollError(
      'precondition',
      `The store refuses what control has signed for this machine (${answer.status})`,
      { detail: 'store_refused' },
    );
  if (answer?.status === 404) return new AtollError('not_found', 'It is not in the store');
  if (answer?.status === 507) return new AtollError('no_space', 'The store is full');
  const why = answer ? `answers ${answer.status}` : 'is out of reach of this machine';
  return new AtollError('unavailable', `The store ${why}`, { detail: 'store_unavailable', retryAfterSeconds: 5 });
}
