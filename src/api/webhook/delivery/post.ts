import { pinnedFetch } from '../../../base/pinned-fetch.ts';

/** Bytes to read of an answer's body: otherwise a server that is still sending would get a reset. */
const bodyBytesMax = 65_536;
const bodyWaitMs = 1_000;

/**
 * Sends one POST over a new connection to `address`, whatever the URL's name would resolve to, and answers the status.
 * Nothing of the answer is kept, and no redirect is followed. Throws `unavailable`, and the reason of an aborted
 * `signal`.
 */
export async function post(
  url: URL,
  address: string,
  request: { headers: Record<string, string>; body: string },
  signal: AbortSignal,
): Promise<number> {
  signal.throwIfAborted();
  const response = await pinnedFetch(url, address, { method: 'POST', ...request, signal });
  void readAway(response);
  return response.status;
}

async function readAway({ body }: Response): Promise<void> {
  const reader = body?.getReader();
  const timer = setTimeout(() => void reader?.cancel().catch(() => {}), bodyWaitMs);
  try {
    for (let bytes = 0, part; bytes <= bodyBytesMax && (part = await reader?.read()) && !part.done;)
      bytes += part.value.length;
    await reader?.cancel();
  } catch {
    // Only the status counts.
  } finally {
    clearTimeout(timer);
  }
}
