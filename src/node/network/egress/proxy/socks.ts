import { AtollError } from '../../../../base/error.ts';
import { parseAddress, type EgressProxy } from '../../../../protocol/network/network.ts';
import { readBytes } from './bytes.ts';
import type { SocketChannel } from './channel.ts';
import type { Target } from './target.ts';

/** How long a SOCKS5 server may take until it has connected to the target. */
const handshakeTimeoutMs = 15_000;

const version = 5;
const method = { none: 0, password: 2 } as const;
const passwordVersion = 1;
const connectCommand = 1;
const addressType = { ipv4: 1, name: 3, ipv6: 4 } as const;
const replies = [
  'done',
  'it failed',
  'its rules forbid it',
  'the network is unreachable',
  'the host is unreachable',
  'the connection was refused',
  'the time to live is over',
  'it does not connect',
  'it does not know the address type',
];

/**
 * Makes a SOCKS5 server (RFC 1928, passwords by RFC 1929) connect to the target, and look it up itself if it is a
 * name.
 */
export async function askSocks(
  channel: SocketChannel,
  target: Target,
  { username, password }: EgressProxy,
): Promise<void> {
  const reader = readBytes(channel, handshakeTimeoutMs);
  const wanted = username !== undefined ? method.password : method.none;
  channel.write(Buffer.of(version, 1, wanted));
  const [theirs, chosen] = await reader.read(2);
  if (theirs !== version || chosen !== wanted) {
    throw new AtollError(
      'unavailable',
      chosen === 0xff ? 'the SOCKS5 server does not take this kind of login' : 'this is no SOCKS5 server',
    );
  }
  if (wanted === method.password) {
    channel.write(Buffer.concat([Buffer.of(passwordVersion), counted(username ?? ''), counted(password ?? '')]));
    const [, status] = await reader.read(2);
    if (status !== 0) throw new AtollError('unavailable', 'the SOCKS5 server refused the credentials');
  }
  channel.write(
    Buffer.concat([
      Buffer.of(version, connectCommand, 0),
      addressOf(target.host),
      Buffer.of(target.port >> 8, target.port & 255),
    ]),
  );
  const [, reply = 1, , type] = await reader.read(4);
  if (reply !== 0) throw new AtollError('unavailable', `the SOCKS5 server says: ${replies[reply] ?? `reply ${reply}`}`);
  await reader.read(
    (type === addressType.name ? ((await reader.read(1))[0] ?? 0) : type === addressType.ipv6 ? 16 : 4) + 2,
  );
  reader.release();
}

function addressOf(host: string): Buffer {
  const octets = parseAddress(host);
  if (!octets) return Buffer.concat([Buffer.of(addressType.name), counted(host)]);
  return Buffer.concat([Buffer.of(octets.length === 4 ? addressType.ipv4 : addressType.ipv6), octets]);
}

/** A text with its length before it; the API has checked that the length fits one octet. */
function counted(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.of(bytes.length), bytes]);
}
