import { summarize, type Summary } from '../measure/statistics.ts';

const headEnd = Buffer.from('\r\n\r\n');

/** A request as bytes, ready to be sent repeatedly. */
export function requestBytes(
  port: number,
  path: string,
  contentType: string,
  body: Uint8Array,
  headers: Record<string, string> = {},
): Buffer {
  const fields = Object.entries({ host: `127.0.0.1:${port}`, 'content-type': contentType, ...headers });
  const lines = [`POST ${path} HTTP/1.1`, ...fields.map(field => field.join(': ')), `content-length: ${body.length}`];
  return Buffer.concat([Buffer.from(lines.join('\r\n')), headEnd, body]);
}

/**
 * Sends `request` `count` times over each of `connections`, the next one once the previous answer is complete. Reads no
 * more of an answer than it needs to see its end, so that the load costs less than what it measures.
 */
export async function load(
  port: number,
  request: Buffer,
  connections: number,
  count: number,
): Promise<{ perSecond: number; latency: Summary }> {
  const latencies: number[] = [];
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: connections }, () => repeat(port, request, count, latencies)));
  return { perSecond: (connections * count) / ((performance.now() - startedAt) / 1000), latency: summarize(latencies) };
}

async function repeat(port: number, request: Buffer, count: number, latencies: number[]): Promise<void> {
  const done = Promise.withResolvers<void>();
  let got = Buffer.alloc(0);
  let sentAt = 0;
  let left = count;
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(_, bytes) {
        got = got.length === 0 ? Buffer.from(bytes) : Buffer.concat([got, bytes]);
        if (!isComplete(got)) return;
        latencies.push(performance.now() - sentAt);
        if (--left === 0) return done.resolve();
        send();
      },
      close: () => done.reject(new Error('the agent closed the connection')),
      error: (_, error) => done.reject(error),
    },
  });
  const send = () => {
    got = Buffer.alloc(0);
    sentAt = performance.now();
    socket.write(request);
  };
  send();
  await done.promise;
  socket.terminate();
}

function isComplete(bytes: Buffer): boolean {
  const head = bytes.indexOf(headEnd);
  if (head < 0) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(bytes.toString('latin1', 0, head))?.[1];
  if (length !== undefined) return bytes.length >= head + 4 + Number(length);
  return bytes.length >= 5 && bytes.toString('latin1', bytes.length - 5) === '0\r\n\r\n';
}
