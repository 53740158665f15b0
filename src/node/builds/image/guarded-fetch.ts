import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import { AtollError, messageOf } from '../../../base/error.ts';
import { protectedNetworks } from '../../../protocol/network.ts';

/** Redirects of one request: registries send blobs to a storage service. */
const redirectsMax = 5;

export type GuardedRequest = {
  headers: Record<string, string>;
  method?: 'GET' | 'POST';
  body?: string;
  /** Hosts (with port) that may have a private address. */
  allowedHosts: ReadonlySet<string>;
  signal: AbortSignal;
};

/**
 * Requests a URL that a stranger may have chosen, from the platform's own network: addresses of the machine and of its
 * neighbours are refused unless the operator allows their host. Credentials stay with the host that they were meant for.
 * Errors: `forbidden`, `unavailable`.
 */
export async function guardedFetch(url: string, request: GuardedRequest): Promise<Response> {
  let target = new URL(url);
  let headers = request.headers;
  for (let redirects = 0; ; redirects++) {
    await assertReachable(target, request.allowedHosts);
    const response = await once(target, headers, request);
    const location = response.headers.get('location');
    if (response.status < 300 || response.status >= 400 || location === null) return response;
    await response.body?.cancel();
    if (redirects === redirectsMax) throw new AtollError('unavailable', `${target.host} redirects too often`);
    const next = new URL(location, target);
    if (next.protocol !== 'https:' && next.protocol !== target.protocol) throw new AtollError('unavailable', `${target.host} redirects to ${next.protocol}`);
    if (next.host !== target.host) headers = Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'authorization'));
    target = next;
  }
}

/** The body of an answer. Errors: `invalid` where it is longer than `bytesMax`. */
export async function readBounded(response: Response, bytesMax: number, what: string): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of response.body ?? []) {
    length += part.length;
    if (length > bytesMax) throw new AtollError('invalid', `${what} is longer than ${bytesMax} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** A short answer of JSON; undefined where it is none. Errors: as above. */
export async function readJson(response: Response, bytesMax: number): Promise<unknown> {
  const bytes = await readBounded(response, bytesMax, `the answer of ${new URL(response.url).host}`);
  try {
    return JSON.parse(Buffer.from(bytes).toString()) as unknown;
  } catch {
    return undefined;
  }
}

async function once(target: URL, headers: Record<string, string>, { method = 'GET', body, signal }: GuardedRequest): Promise<Response> {
  try {
    // What nobody asked for is not decompressed: a few bytes can become all of the memory.
    return await fetch(target, { method, headers: { 'accept-encoding': 'identity', ...headers }, redirect: 'manual', decompress: false, signal, ...(body !== undefined && { body }) });
  } catch (error) {
    signal.throwIfAborted();
    throw new AtollError('unavailable', `${target.host} can't be reached: ${messageOf(error)}`, { cause: error });
  }
}

async function assertReachable(target: URL, allowedHosts: ReadonlySet<string>): Promise<void> {
  if (allowedHosts.has(target.host)) return;
  if (target.protocol !== 'https:') throw new AtollError('forbidden', `${target.host} is not reached without TLS; the operator can allow it`);
  const name = target.hostname.replace(/^\[|\]$/g, '');
  const addresses = isIP(name) ? [name] : (await lookup(name, { all: true }).catch(() => [])).map(found => found.address);
  if (addresses.length === 0) throw new AtollError('unavailable', `${name} has no address`);
  if (addresses.some(isProtected)) throw new AtollError('forbidden', `${name} has an address that builds may not reach; the operator can allow it`);
}

function isProtected(address: string): boolean {
  const list = new BlockList();
  for (const network of protectedNetworks) {
    const [base = '', length] = network.split('/');
    list.addSubnet(base, Number(length), 'ipv4');
  }
  // Of IPv6, only what is routed on the Internet; an address that embeds an IPv4 one counts as that.
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined || isIP(address) === 4) return list.check(mapped ?? address, 'ipv4');
  return !/^[23]/.test(address) || /^2002:|^2001:0?:/i.test(address);
}
