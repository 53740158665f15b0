// A server on Node.js's own parser that records which requests it finds in its input. On a second port it reports them.
import { createServer } from 'node:http';

let seen = [];
const server = createServer({ keepAliveTimeout: 60_000, requestTimeout: 0, headersTimeout: 0 }, (request, response) => {
  const found = {
    method: request.method,
    url: request.url,
    bytes: 0,
    ended: false,
    trailers: 0,
    headers: request.headers,
  };
  seen.push(found);
  request.on('data', part => (found.bytes += part.length));
  request.on('end', () => {
    found.ended = true;
    found.trailers = request.rawTrailers.length / 2;
    response.setHeader('Content-Length', '2');
    response.end('ok');
  });
  request.on('error', () => {});
});
server.on('clientError', (error, socket) => {
  seen.push({ refused: error.code });
  if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
});
server.on('checkContinue', (request, response) => {
  response.writeContinue();
  server.emit('request', request, response);
});
const control = createServer((_, response) => {
  response.end(JSON.stringify(seen));
  seen = [];
});
server.listen(0, '127.0.0.1', () => {
  control.listen(0, '127.0.0.1', () => console.log(`${server.address().port} ${control.address().port}`));
});
process.stdin.on('end', () => process.exit(0)).resume();
