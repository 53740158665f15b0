import { readFile } from 'node:fs/promises';
import { Sandbox } from 'e2b';
import type { TestPlatform } from '../../support/platform.ts';

const port = 3000;
const script = new URL('hostile-page.html', import.meta.url);

/** A server inside a sandbox that records its requests, including headers. */
const server = `
const http = require('http'), fs = require('fs');
http.createServer((request, response) => {
  fs.appendFileSync('/tmp/requests', request.method + ' ' + request.url + ' ' + JSON.stringify(request.headers) + '\\n');
  response.setHeader('Set-Cookie', ['__Host-atoll=stolen; Path=/; Secure', '__Host-atoll=stolen; Path=/; Secure; Domain=' + process.argv[2]]);
  response.setHeader('Clear-Site-Data', '"cookies"');
  response.setHeader('Access-Control-Allow-Origin', request.headers.origin || '*');
  response.setHeader('Access-Control-Allow-Credentials', 'true');
  if (request.url === '/page') response.removeHeader('Clear-Site-Data');
  response.setHeader('Content-Type', 'text/html');
  response.end(request.url === '/page' ? fs.readFileSync('/tmp/page.html') : 'ok');
}).listen(${port});
`;

/** A page in a sandbox that tries everything against the dashboard at `dashboard`, with a sign-in link of its own. */
type HostilePage = AsyncDisposable & {
  url: string;
  /** Every request that its server got, with all headers. */
  requests(): Promise<string>;
};

/** Serves the hostile page from a sandbox, on the sandbox's own host. */
export async function serveHostilePage(
  { ready }: TestPlatform,
  { dashboard, link }: { dashboard: string; link: string },
): Promise<HostilePage> {
  const sandbox = await Sandbox.create('base', {
    apiKey: ready.apiKey,
    apiUrl: ready.url,
    sandboxUrl: ready.url,
    domain: ready.domain,
  });
  const { hostname, port: tlsPort } = new URL(dashboard);
  const page = (await readFile(script, 'utf8'))
    .replaceAll('{{dashboard}}', dashboard)
    .replaceAll('{{link}}', link)
    .replaceAll('{{sandbox}}', sandbox.sandboxId);
  await sandbox.files.write('/tmp/page.html', page);
  await sandbox.files.write('/tmp/server.cjs', server);
  await sandbox.commands.run(`node /tmp/server.cjs ${hostname}`, { background: true });
  await sandbox.commands.run(`until curl -s localhost:${port}/ready; do sleep 0.05; done`);
  return {
    url: `https://${port}-${sandbox.sandboxId}.${hostname}:${tlsPort}/page`,
    requests: () => sandbox.files.read('/tmp/requests'),
    async [Symbol.asyncDispose]() {
      await sandbox.kill();
    },
  };
}
