// A Node.js service that speaks only HTTP/2: http2-service.mjs [KEY CERTIFICATE]. Prints its port.

import { readFileSync } from 'node:fs';
import { createSecureServer, createServer } from 'node:http2';

const [key, certificate] = process.argv.slice(2);
const server =
  key === undefined ? createServer() : createSecureServer({ key: readFileSync(key), cert: readFileSync(certificate) });

/** Requests that wait for the second event. */
const waiting = [];

server.on('request', async (request, response) => {
  let body = '';
  for await (const part of request) body += part;
  const { pathname } = new URL(request.url, 'http://service');
  response.setHeader('x-by', 'http2');
  if (pathname === '/204') return void response.writeHead(204).end();
  if (pathname === '/304') return void response.writeHead(304, { etag: '"one"' }).end();
  if (pathname === '/length') return void response.end(String(body.length));
  if (pathname === '/large') {
    response.setHeader('content-length', 2_000_000);
    return void response.end(request.method === 'HEAD' ? undefined : Buffer.alloc(2_000_000, 'x'));
  }
  if (pathname === '/events') {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: one\n\n');
    return void waiting.push(response);
  }
  if (pathname === '/go') for (const each of waiting.splice(0)) each.end('data: two\n\n');
  const { 'x-mine': mine, 'x-forwarded-proto': forwarded } = request.headers;
  const said = {
    method: request.method,
    path: request.url,
    authority: request.authority,
    mine,
    forwarded,
    body,
    lines: request.rawHeaders,
    behind: request.rawTrailers,
  };
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(said));
});
server.listen(0, '127.0.0.1', () => process.stdout.write(String(server.address().port)));
