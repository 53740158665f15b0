import { RawSocket } from '../../edge/support/raw-socket.ts';
import type { Found, Llhttp } from './llhttp.ts';

/** How long to wait for a connection that answers nothing more, ms. */
const silenceMs = 150;

/**
 * The requests that the server found whole after `bytes` were sent through `port`: a pair of servers must agree on
 * them.
 */
export async function requestsFound(
  llhttp: Llhttp,
  port: number,
  bytes: string,
): Promise<{ whole: string[]; answers: string[] }> {
  await llhttp.take();
  const client = await RawSocket.connect(port);
  client.send(bytes);
  let [length, sinceMs] = [0, performance.now()];
  while (client.end === undefined && !client.ended && performance.now() - sinceMs < silenceMs) {
    if (client.received.length !== length) [length, sinceMs] = [client.received.length, performance.now()];
    await Bun.sleep(3);
  }
  client.close();
  const answers = [...client.received.matchAll(/HTTP\/1\.[01] (\d{3})/g)].map(([, status = '']) => status);
  return { whole: (await llhttp.take()).flatMap(describe), answers };
}

/** Method, path and length of a whole request. A target with scheme and host counts as its path. */
function describe(found: Found): string[] {
  if ('refused' in found || !found.ended) return [];
  return [`${found.method} ${found.url.replace(/^https?:\/\/[^/]*/, '') || '/'} ${found.bytes}`];
}
