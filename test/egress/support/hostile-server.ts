/**
 * Malicious answers of a server, by what they do. Written to the connection, which then stays open unless the answer
 * ends it.
 */
export const hostileShapes: Record<string, string[]> = {
  'a head of blanks': [`HTTP/1.1 200 OK\r\nX: a${' '.repeat(60_000)}b\r\nContent-Length: 0\r\n\r\n`],
  'a head of blanks below the limit': [`HTTP/1.1 200 OK\r\nX: a${' '.repeat(15_000)}b\r\nContent-Length: 0\r\n\r\n`],
  'a head of commas': [`HTTP/1.1 200 OK\r\nTransfer-Encoding: ${','.repeat(15_000)}\r\n\r\n`],
  'a head without end': [`HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(50_000)}`],
  'a head octet by octet': [...`HTTP/1.1 200 OK\r\nX: ${' '.repeat(3_000)}\r\nContent-Length: 0\r\n\r\n`],
  'interim answers without end': ['HTTP/1.1 100 Continue\r\n\r\n'.repeat(60_000)],
  'interim answers, then one': [
    `${'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n'.repeat(10)}HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n`,
  ],
  'another protocol that nobody asked for': [
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nraw bytes',
  ],
  'a status of no number': ['HTTP/1.1 2OO OK\r\n\r\n'],
  'two answers': ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond'],
  'an answer before the question': [
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno',
  ],
  'chunks of one octet': [
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(30_000)}0\r\n\r\n`,
  ],
  'a chunk size without end': [`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'0'.repeat(60_000)}`],
  'chunk extensions without end': [`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(60_000)}`],
  'trailers without end': [`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${'X: y\r\n'.repeat(20_000)}`],
  'two lengths': ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nab'],
  'a length beyond all numbers': [`HTTP/1.1 200 OK\r\nContent-Length: ${'9'.repeat(300)}\r\n\r\nab`],
  'nothing at all': [''],
  noise: [Buffer.alloc(60_000, '\x00\xff\r\n:').toString('latin1')],
  'line ends and nothing else': ['\r\n'.repeat(30_000)],
};

/** A server on port 80 that gives the answer named by a request's path, to every request. */
export function startHostileServer(hostname: string): void {
  Bun.listen<{ unsent: string[] }>({
    hostname,
    port: 80,
    socket: {
      open(socket) {
        socket.data = { unsent: [] };
        socket.setNoDelay(true);
      },
      data(socket, bytes) {
        const shape = decodeURIComponent(/^GET \/(\S*)/.exec(bytes.toString('latin1'))?.[1] ?? '');
        socket.data.unsent.push(...(hostileShapes[shape] ?? []));
        send(socket);
      },
      drain: send,
      error() {},
    },
  });
}

function send(socket: Bun.Socket<{ unsent: string[] }>): void {
  const { unsent } = socket.data;
  while (unsent.length > 0) {
    const bytes = Buffer.from(unsent[0] as string, 'latin1');
    const sent = Math.max(socket.write(bytes), 0);
    if (sent < bytes.length) return void (unsent[0] = bytes.toString('latin1', sent));
    unsent.shift();
  }
}
