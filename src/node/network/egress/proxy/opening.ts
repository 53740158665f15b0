import type { SocketChannel } from './channel.ts';
import { ClientHelloReader } from './tls/client-hello.ts';
import type { Asked } from './decide.ts';
import { Gathered } from './gathered.ts';
import { readRequest } from './http/request.ts';

/** How long a client may take to say what it wants. */
export const openingTimeoutMs = 10_000;
/** How long to wait for a client whose address alone lets it through: it may be waiting for the server's greeting. */
export const silenceMs = 1_000;
/** More than a head, and more than a ClientHello. */
const openingBytesMax = 64 << 10;

const nothing: Asked = { kind: 'other', name: undefined, encrypted: false };

/**
 * Reads the beginning of a connection as far as needed to see the host that it asks for, and leaves it in the channel.
 * Only TLS and HTTP name one. A client that says nothing within `patienceMs`, or something else, has named none.
 * Undefined: the client has gone.
 */
export function readOpening(
  client: SocketChannel,
  protocol: 'tls' | 'http' | 'unknown',
  patienceMs: number,
): Promise<Asked | undefined> {
  if (protocol === 'unknown') return Promise.resolve(nothing);
  const have = new Gathered();
  const read = protocol === 'tls' ? tlsReader() : httpReader(have);
  return new Promise(resolve => {
    const settle = (asked: Asked | undefined) => {
      clearTimeout(timer);
      client.pause();
      client.unread(have.takeAll());
      resolve(asked);
    };
    const timer = setTimeout(() => settle(nothing), patienceMs);
    client.use({
      data(bytes) {
        have.append(bytes);
        const asked = read(bytes);
        if (asked) settle(asked);
        else if (have.length > openingBytesMax) settle(nothing);
      },
      drained() {},
      ended: () => settle(have.length > 0 ? nothing : undefined),
      closed: () => settle(undefined),
    });
  });
}

function tlsReader(): (part: Buffer) => Asked | undefined {
  const reader = new ClientHelloReader();
  return part => {
    const hello = reader.push(part);
    if (hello === 'incomplete') return undefined;
    return hello === 'invalid' ? nothing : { kind: 'tls', name: hello.serverName, encrypted: hello.encrypted };
  };
}

function httpReader(have: Gathered): () => Asked | undefined {
  let searched = 0;
  return () => {
    const request = readRequest(have.bytes, searched);
    searched = have.length;
    if (request === 'incomplete') return undefined;
    // A request that will not be passed on may still say which host it was meant for, for the log.
    if ('refused' in request) return { ...nothing, meant: request.host };
    return { kind: 'http', name: request.host, encrypted: false };
  };
}
