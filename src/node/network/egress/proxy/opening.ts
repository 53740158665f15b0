import { normalName, splitHostPort } from '../../../../protocol/network.ts';
import type { SocketChannel } from './channel.ts';
import { looksLikeTls, parseClientHello } from './client-hello.ts';
import type { Asked } from './decide.ts';
import { parseHead } from './http/head.ts';
import { readRequest } from './http/request.ts';

/** How long a client may take to say what it wants. */
export const openingTimeoutMs = 10_000;
/** How long we wait for a client whose address alone lets it through: it may be one that waits for the server's greeting. */
export const silenceMs = 1_000;
const openingBytesMax = 64 << 10;

const nothing: Asked = { kind: 'other', name: undefined, encrypted: false };

/**
 * Reads the begin of a connection as far as is needed to see the host that it asks for, and leaves it in the channel.
 * Only TLS and HTTP name one. A client that says nothing in time, `patienceMs`,
 * or something else, has named none. Undefined: it has gone.
 */
export function readOpening(client: SocketChannel, protocol: 'tls' | 'http' | 'unknown', patienceMs: number): Promise<Asked | undefined> {
  if (protocol === 'unknown') return Promise.resolve(nothing);
  let have: Buffer = Buffer.alloc(0);
  return new Promise(resolve => {
    const settle = (asked: Asked | undefined) => {
      clearTimeout(timer);
      client.pause();
      client.unread(have);
      resolve(asked);
    };
    const timer = setTimeout(() => settle(nothing), patienceMs);
    client.use({
      data(bytes) {
        have = have.length > 0 ? Buffer.concat([have, bytes]) : bytes;
        const asked = protocol === 'tls' ? readTls(have) : readHttp(have);
        if (asked) settle(asked);
        else if (have.length > openingBytesMax) settle(nothing);
      },
      drained() {},
      ended: () => settle(have.length > 0 ? nothing : undefined),
      closed: () => settle(undefined),
    });
  });
}

function readTls(bytes: Buffer): Asked | undefined {
  if (!looksLikeTls(bytes)) return nothing;
  const hello = parseClientHello(bytes);
  if (hello === 'incomplete') return undefined;
  return hello === 'invalid' ? nothing : { kind: 'tls', name: hello.serverName, encrypted: hello.encrypted };
}

function readHttp(bytes: Buffer): Asked | undefined {
  const head = parseHead(bytes);
  if (head === 'incomplete') return undefined;
  if (head === 'invalid') return nothing;
  const request = readRequest(head);
  // What is not passed on in the end may still say which host it was meant for, for the log.
  if ('refused' in request) return { ...nothing, meant: normalName(splitHostPort(head.fields.find(field => field.name.toLowerCase() === 'host')?.value ?? '').host) };
  return { kind: 'http', name: request.host, encrypted: false };
}
