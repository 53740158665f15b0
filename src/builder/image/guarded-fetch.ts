import { AtollError } from '../../base/error.ts';
import { pinnedFetch, readBounded, type PinnedRequest } from '../../base/pinned-fetch.ts';
import type { Conversation } from '../conversation.ts';
import { parseJson } from '../../base/json-text.ts';

/** Redirects of one request: registries send blobs to a storage service. */
const redirectsMax = 5;

/**
 * Requests a URL that a stranger may have chosen. The node resolves each host on the way, including redirects, and
 * decides whether it may be reached. Credentials stay with their host. Errors: `forbidden`, `unavailable`.
 */
export async function guardedFetch(
  url: string,
  request: PinnedRequest,
  { resolve }: Pick<Conversation, 'resolve'>,
): Promise<Response> {
  let target = new URL(url);
  let { headers } = request;
  for (let redirects = 0; ; redirects++) {
    const addresses = await resolve({ host: target.host, isSecure: target.protocol === 'https:' });
    const response = await firstAnswer(target, addresses, { ...request, headers });
    const location = response.headers.get('location');
    if (response.status < 300 || response.status >= 400 || location === null) return response;
    await response.body?.cancel();
    if (redirects === redirectsMax) throw new AtollError('unavailable', `${target.host} redirects too often`);
    const next = URL.parse(location.slice(0, locationCharactersMax), target.href);
    if (!next || (next.protocol !== 'https:' && next.protocol !== target.protocol))
      throw new AtollError('unavailable', `${target.host} redirects to where it must not`);
    if (next.host !== target.host)
      headers = Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'authorization'));
    target = next;
  }
}

const locationCharactersMax = 8_192;

/** The answer of the first address that gives one. */
async function firstAnswer(target: URL, addresses: string[], request: PinnedRequest): Promise<Response> {
  for (const [index, address] of addresses.entries()) {
    try {
      return await pinnedFetch(target, address, request);
    } catch (error) {
      if (index === addresses.length - 1) throw error;
    }
  }
  throw new AtollError('unavailable', `${target.host} has no address`);
}

/** A short JSON answer; undefined if it is not JSON. Errors: `too_large`. */
export async function readJson(response: Response, bytesMax: number, host: string): Promise<unknown> {
  const bytes = await readBounded(response, bytesMax, `the answer of ${host}`);
  return parseJson(Buffer.from(bytes).toString());
}
