import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { randomBytes } from 'node:crypto';
import { AtollError, messageOf } from '../../base/error.ts';
import { acceptOf } from '../../base/websocket-frames.ts';
import { tunnelPath, tunnelProtocol } from '../../protocol/network/tunnel.ts';
import { TunnelStream } from './stream.ts';
import { parseJson } from '../../base/json-text.ts';

/** A port of a sandbox, and what reaching it with the sandbox's token takes. `url`: that of the installation. */
export type TunnelEnd = { url: string; sandboxId: string; accessToken: string | undefined; port: number };

const answerBytesMax = 16 * 1024;
const answerTimeoutMs = 60_000;
const headEnd = '\r\n\r\n';

/** A connection to a port of a sandbox. Fails with `unavailable`, in the installation's own words if it has any. */
export async function openTunnel(end: TunnelEnd): Promise<TunnelStream> {
  const socket = await connected(new URL(end.url));
  try {
    const key = randomBytes(16).toString('base64');
    socket.write(requestOf(end, key));
    const { head, rest } = await answerOf(socket);
    if (!head.startsWith('HTTP/1.1 101 ') || !head.includes(acceptOf(key))) throw refusal(head, rest);
    return new TunnelStream(socket, rest);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function connected({ protocol, hostname, port }: URL): Promise<Socket> {
  const host = hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve, reject) => {
    const socket =
      protocol === 'https:'
        ? connectTls({ host, port: Number(port || 443), servername: host, ALPNProtocols: ['http/1.1'] })
        : connectTcp({ host, port: Number(port || 80) });
    socket.once(protocol === 'https:' ? 'secureConnect' : 'connect', () => resolve(socket));
    socket.once('error', error =>
      reject(new AtollError('unavailable', `${host} does not answer: ${messageOf(error)}`, { cause: error })),
    );
  });
}

function requestOf({ url, sandboxId, accessToken, port }: TunnelEnd, key: string): string {
  const lines = [
    `GET ${tunnelPath}${port} HTTP/1.1`,
    `Host: ${new URL(url).host}`,
    `Svc-Sandbox-Id: ${sandboxId}`,
    ...(accessToken === undefined ? [] : [`X-Access-Token: ${accessToken}`]),
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${key}`,
    `Sec-WebSocket-Protocol: ${tunnelProtocol}`,
  ];
  return lines.join('\r\n') + headEnd;
}

/**
 * The other side's answer once its head is whole, and any bytes after it. Nothing more is read until somebody listens.
 */
function answerOf(socket: Socket): Promise<{ head: string; rest: Buffer }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ head: string; rest: Buffer }>();
  let bytes = Buffer.alloc(0);
  const fail = (why: string) => reject(new AtollError('unavailable', `The connection failed: ${why}`));
  const onData = (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    const end = bytes.indexOf(headEnd);
    if (end < 0) return bytes.length > answerBytesMax ? fail('the answer is too long') : undefined;
    socket.pause();
    resolve({ head: bytes.toString('latin1', 0, end), rest: bytes.subarray(end + headEnd.length) });
  };
  const onError = (error: Error) => fail(messageOf(error));
  const onEnd = () => fail('the other side closed it');
  const timer = setTimeout(() => fail('there was no answer'), answerTimeoutMs);
  socket.on('data', onData).once('error', onError).once('end', onEnd);
  return promise.finally(() => {
    clearTimeout(timer);
    socket.off('data', onData).off('error', onError).off('end', onEnd);
  });
}

/** The edge's answers are short and arrive with their heads. */
function refusal(head: string, rest: Buffer): AtollError {
  const status = /^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 'nothing in HTTP';
  const { message } = (parseJson(rest.toString()) ?? {}) as { message?: unknown };
  return new AtollError('unavailable', typeof message === 'string' ? message : `The installation answered ${status}.`);
}
