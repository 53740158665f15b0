import { isIP } from 'node:net';
import { AtollError, systemCodeOf } from './error.ts';

/** A request to an address that was looked up and checked before. */
export type PinnedRequest = {
  method?: 'GET' | 'POST';
  headers: Record<string, string>;
  body?: string;
  /** Authorities that are trusted besides the usual ones, PEM. */
  authorities?: string;
  signal?: AbortSignal;
};

/**
 * Sends one request to a host that a stranger chose, over a new connection to `address`, whatever the host's name
 * resolves to by now; with TLS the certificate must be for the name. It follows no redirect: the caller decides about
 * those. It does not decompress: a few bytes could become all of the memory. Errors: `unavailable`, and the reason of
 * an aborted `signal`.
 */
export async function pinnedFetch(
  url: URL,
  address: string,
  { method = 'GET', headers, body, authorities, signal }: PinnedRequest,
): Promise<Response> {
  const name = hostNameOf(url);
  const target = new URL(url);
  target.hostname = isIP(address) === 6 ? `[${address}]` : address;
  const tls = { ...(isIP(name) === 0 && { serverName: name }), ...(authorities !== undefined && { ca: authorities }) };
  try {
    return await fetch(target, {
      method,
      headers: { 'accept-encoding': 'identity', ...headers, host: url.host },
      redirect: 'manual',
      decompress: false,
      keepalive: false,
      ...(url.protocol === 'https:' && { tls }),
      ...(body !== undefined && { body }),
      ...(signal && { signal }),
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw new AtollError('unavailable', `${url.host} can't be reached: ${reasonOf(error)}`, { cause: error });
  }
}

/** Why there was no answer, for the person who named the host: the runtime's own words are for programmers. */
function reasonOf(error: unknown): string {
  const code = systemCodeOf(error);
  if (code === 'ECONNREFUSED') return 'nothing listens there';
  if (code === 'ECONNRESET') return 'it closed the connection without an answer';
  if (code === 'Malformed_HTTP_Response') return 'it does not speak HTTP';
  return code === '' ? 'no connection was made' : code;
}

/** The host of a URL, an IPv6 address without brackets. */
export function hostNameOf(url: URL): string {
  const { hostname } = url;
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

/** The body of an answer. Errors: `too_large` where it is longer than `bytesMax`. */
export async function readBounded({ body }: Response, bytesMax: number, what: string): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of body ?? []) {
    length += part.length;
    if (length > bytesMax) throw new AtollError('too_large', `${what} is longer than ${bytesMax} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}
