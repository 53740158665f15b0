// The gateway itself, as the sandbox's user: reads its order from the input, starts the servers, listens, says `ready`
// or what failed on its output, and closes that.
import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { Backend } from './backend.mjs';
import { mergedServer } from './merged.mjs';

/** The port that clients of the platform know. */
const port = 50005;
/** Clients at a time: another one takes the place of who was silent longest. */
const sessionsMax = 100;

const { token, servers } = await json(process.stdin);
const digest = text => createHash('sha256').update(text).digest();
const expected = digest(`Bearer ${token}`);
/** Each session's transport and server by the session's ID, the one that was silent longest first. */
const sessions = new Map();
const backends = servers.map(run => new Backend(run, notification => tellAll(notification)));

try {
  await Promise.all(backends.map(backend => backend.client()));
  const http = createServer((request, response) => {
    answer(request, response).catch(error => {
      console.error(error);
      if (!response.headersSent) response.writeHead(500).end();
    });
  });
  await new Promise((resolve, reject) => http.once('error', reject).listen(port, resolve));
  process.stdout.end('ready');
} catch (error) {
  process.stdout.end(error.message, () => process.exit(1));
}

async function answer(request, response) {
  if (new URL(request.url, 'http://gateway').pathname !== '/mcp') return refuse(response, 404, 'Not found');
  if (!timingSafeEqual(digest(request.headers.authorization ?? ''), expected)) {
    response.setHeader('WWW-Authenticate', 'Bearer');
    return refuse(response, 401, 'The token of the gateway is needed: Authorization: Bearer …');
  }
  const id = request.headers['mcp-session-id'];
  if (id === undefined) return (await newSession()).handleRequest(request, response);
  const session = sessions.get(id);
  if (!session) return refuse(response, 404, 'This session has ended: begin a new one');
  sessions.delete(id);
  sessions.set(id, session);
  return session.transport.handleRequest(request, response);
}

async function newSession() {
  const server = mergedServer(backends);
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized(id) {
      sessions.set(id, { transport, server });
      const [[oldest, { transport: silent }]] = sessions;
      if (sessions.size <= sessionsMax) return;
      sessions.delete(oldest);
      void silent.close();
    },
    onsessionclosed: id => void sessions.delete(id),
  });
  await server.connect(transport);
  return transport;
}

function tellAll(notification) {
  for (const { server } of sessions.values()) server.notification(notification).catch(error => console.error(error));
}

function refuse(response, status, message) {
  response.writeHead(status, { 'Content-Type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32000, message }, id: null }));
}
