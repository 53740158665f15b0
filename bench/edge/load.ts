import { summarize, type Summary } from '../measure/statistics.ts';

type LoadResult = { requestsPerSecond: number; latencyMs: Summary };
type TransferResult = { megabytesPerSecond: number };

type Way = { readonly port: number; readonly host: string; readonly tls: boolean };

/** One latency in so many is kept: enough for a p99, few enough not to slow down the load. */
const sampleEvery = 8;
const responseEnd = Buffer.from('\r\n\r\n');

/**
 * Keep-alive GETs over `connections` for `durationMs`; each connection sends its next request once the previous
 * response is complete. Reads no more of a response than its length, so that the load costs less than what it measures.
 */
async function requests(way: Way, connections: number, durationMs: number): Promise<LoadResult> {
  const request = Buffer.from(
    `GET / HTTP/1.1\r\nHost: ${way.host}\r\nUser-Agent: bench\r\nAccept: */*\r\nX-Api-Key: 0123456789abcdef\r\n\r\n`,
  );
  const responseBytes = await responseBytesOf(way, request);
  const latencies: number[] = [];
  let answered = 0;
  let over = false;
  const start = performance.now();
  const { promise: idle, resolve } = Promise.withResolvers<void>();
  let open = connections;
  type State = { got: number; sentMs: number };
  const send = (socket: Bun.Socket<State>) => {
    socket.data.got = 0;
    socket.data.sentMs = performance.now();
    socket.write(request);
  };
  const close = (socket: Bun.Socket<State>) => {
    socket.close();
    if (--open === 0) resolve();
  };
  await Promise.all(
    Array.from({ length: connections }, () =>
      Bun.connect<State>({
        hostname: '127.0.0.1',
        port: way.port,
        ...(way.tls ? { tls: { rejectUnauthorized: false } } : {}),
        socket: {
          open(socket) {
            socket.data = { got: 0, sentMs: 0 };
            if (!way.tls) send(socket);
          },
          handshake: send,
          data(socket, bytes) {
            socket.data.got += bytes.length;
            if (socket.data.got < responseBytes) return;
            if (answered++ % sampleEvery === 0) latencies.push(performance.now() - socket.data.sentMs);
            if (over) close(socket);
            else send(socket);
          },
          error() {},
        },
      }),
    ),
  );
  setTimeout(() => (over = true), durationMs);
  await idle;
  return { requestsPerSecond: answered / ((performance.now() - start) / 1000), latencyMs: summarize(latencies) };
}

/** One GET whose response is only counted. */
function download(way: Way, path: string, bytes: number): Promise<TransferResult> {
  return transfer(way, `GET ${path} HTTP/1.1\r\nHost: ${way.host}\r\n\r\n`, 0, bytes);
}

/** One POST of `bytes`. */
function upload(way: Way, path: string, bytes: number): Promise<TransferResult> {
  return transfer(way, `POST ${path} HTTP/1.1\r\nHost: ${way.host}\r\nContent-Length: ${bytes}\r\n\r\n`, bytes, 1);
}

async function transfer(way: Way, head: string, sendBytes: number, wantedBytes: number): Promise<TransferResult> {
  const block = Buffer.alloc(1 << 20);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let left = sendBytes;
  let got = 0;
  const start = performance.now();
  const pump = (socket: Bun.Socket<undefined>) => {
    while (left > 0) {
      const size = Math.min(left, block.length);
      const sent = socket.write(block, 0, size);
      left -= Math.max(0, sent);
      if (sent < size) return;
    }
  };
  const begin = (socket: Bun.Socket<undefined>) => {
    socket.write(head);
    pump(socket);
  };
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port: way.port,
    ...(way.tls ? { tls: { rejectUnauthorized: false } } : {}),
    socket: {
      open: opened => (way.tls ? undefined : begin(opened)),
      handshake: begin,
      drain: pump,
      data(_, bytes) {
        got += bytes.length;
        if (got >= wantedBytes && left === 0) resolve();
      },
      close: () => reject(new Error(`the connection ended after ${got} bytes`)),
      error() {},
    },
  });
  await promise;
  socket.close();
  return { megabytesPerSecond: (sendBytes + wantedBytes) / 1e6 / ((performance.now() - start) / 1000) };
}

/** The length of a response to `request`, head and body. */
async function responseBytesOf(way: Way, request: Buffer): Promise<number> {
  let got = Buffer.alloc(0);
  const { promise, resolve } = Promise.withResolvers<number>();
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port: way.port,
    ...(way.tls ? { tls: { rejectUnauthorized: false } } : {}),
    socket: {
      open: opened => void (way.tls || opened.write(request)),
      handshake: opened => void opened.write(request),
      data(_, bytes) {
        got = Buffer.concat([got, bytes]);
        const end = got.indexOf(responseEnd) + responseEnd.length;
        const length = Number(/content-length: (\d+)/i.exec(got.toString('latin1', 0, end))?.[1] ?? Number.NaN);
        if (got.length >= end + length) resolve(end + length);
      },
      error() {},
    },
  });
  const length = await promise;
  socket.close();
  return length;
}

// As a program: makes one measurement, given by its JSON arguments, and prints the result as JSON.
const [kind, argument = '{}'] = process.argv.slice(2);
const { way, ...rest } = JSON.parse(argument);
const result =
  kind === 'requests'
    ? await requests(way, rest.connections, rest.durationMs)
    : kind === 'download'
      ? await download(way, rest.path, rest.bytes)
      : await upload(way, rest.path, rest.bytes);
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);
