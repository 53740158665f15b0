import { afterAll, beforeAll, expect } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';
import { killGroup, runToEnd, start, textOf, waitFor } from '../support/process.ts';
import { testUnless } from '../support/skip.ts';

// The nginx file in `ops`, with its domain and ports filled in: clients' requests pass through it.

const missing = ['nginx', 'openssl', 'curl'].filter(name => Bun.which(name) === null);
const proxyTest = testUnless(missing.length > 0 ? `${missing.join(', ')} is not installed` : undefined);
const domain = 'example.org';
const bodyBytes = 3 * 1024 ** 2;
const folder = mkdtempSync(join(tmpdir(), 'atoll-nginx-'));
let platform: TestPlatform;
let port: number;
let nginx: ReturnType<typeof start>;
let sandbox: { sandboxID: string; envdAccessToken: string };

/** curl to a host of the domain, through the proxy. */
async function curl(host: string, path: string, ...more: string[]) {
  const names = ['--cacert', join(folder, 'cert.pem'), '--resolve', `*:${port}:127.0.0.1`];
  const url = `https://${host}:${port}${path}`;
  return runToEnd(['curl', '--silent', '--show-error', '--max-time', '30', ...names, ...more, url]);
}
const key = () => ['--header', `X-API-Key: ${platform.ready.apiKey}`];
const token = () => ['--header', `X-Access-Token: ${sandbox.envdAccessToken}`];
const hostOf = (number: number) => `${number}-${sandbox.sandboxID}.${domain}`;

function freePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

/** The shipped file with the reader's own values filled in. */
function configuration(): string {
  const text = readFileSync(join(repository, 'ops/nginx/atoll.conf'), 'utf8')
    .replaceAll(/listen (?!\[)443/g, `listen 127.0.0.1:${port}`)
    .replaceAll(/ *listen \[.*\n/g, '')
    .replace('/etc/ssl/example.org.pem', join(folder, 'cert.pem'))
    .replace('/etc/ssl/example.org.key', join(folder, 'key.pem'))
    .replace('http://127.0.0.1:3000', `http://127.0.0.1:${new URL(platform.ready.url).port}`);
  return `daemon off; pid ${join(folder, 'pid')}; error_log stderr; events {}\nhttp { access_log off;\n${text}}\n`;
}

beforeAll(async () => {
  if (missing.length > 0) return;
  platform = await startPlatform({ ATOLL_DOMAIN: domain });
  port = freePort();
  const names = `subjectAltName=DNS:${domain},DNS:*.${domain}`;
  const made = ['-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', `/CN=${domain}`, '-addext', names];
  const files = ['-keyout', join(folder, 'key.pem'), '-out', join(folder, 'cert.pem')];
  await runToEnd(['openssl', 'req', '-x509', ...made, ...files]);
  writeFileSync(join(folder, 'nginx.conf'), configuration());
  nginx = start(['nginx', '-c', join(folder, 'nginx.conf')], {});
  const said = textOf(nginx, 'stderr');
  await waitFor('nginx', async () => {
    if (nginx.exitCode !== null) throw new Error(said());
    return (await curl(domain, '/health')).stdout.includes('ok');
  });
  const body = JSON.stringify({ templateID: 'base', timeout: 300, secure: true });
  const created = await curl(domain, '/sandboxes', ...key(), '--json', body);
  sandbox = JSON.parse(created.stdout) as typeof sandbox;
}, 10 * 60_000);
afterAll(async () => {
  if (missing.length === 0) {
    killGroup(nginx, 'SIGTERM');
    await platform[Symbol.asyncDispose]();
  }
  rmSync(folder, { recursive: true, force: true });
});

proxyTest('files of any length go to a sandbox and come back', async () => {
  writeFileSync(join(folder, 'body'), crypto.getRandomValues(new Uint8Array(bodyBytes).subarray(0, 65_536)));
  await runToEnd(['truncate', '--size', String(bodyBytes), join(folder, 'body')]);
  const path = '/files?path=/home/user/body&username=user';
  const written = await curl(hostOf(49_983), path, ...token(), '--form', `file=@${join(folder, 'body')}`);
  expect(written.stdout).toContain('/home/user/body');
  await curl(hostOf(49_983), path, ...token(), '--output', join(folder, 'back'));
  expect(readFileSync(join(folder, 'back')).equals(readFileSync(join(folder, 'body')))).toBe(true);
});

proxyTest('what a sandbox serves is there at its own host, and the API at the domain alone', async () => {
  const serve = 'cd /tmp && echo served > page && (setsid python3 -m http.server 8000 > /dev/null 2>&1 &)';
  const env = { ...platform.env, HOME: folder };
  const begun = await runToEnd([join(repository, 'bin/atoll'), 'sandbox', 'exec', sandbox.sandboxID, serve], { env });
  expect(begun.exitCode, begun.stderr).toBe(0);
  await waitFor('the page', async () => (await curl(hostOf(8000), '/page')).stdout === 'served\n');
  expect((await curl(domain, '/v2/sandboxes', ...key())).stdout).toContain(sandbox.sandboxID);
});

proxyTest('WebSockets pass, and streams are not held back', async () => {
  const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
  const nonce = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
  const headers = [...upgrade, nonce].flatMap(header => ['--header', header]);
  const opened = ['--http1.1', '--include', '--no-buffer', '--max-time', '2', ...token(), ...headers];
  expect((await curl(hostOf(49_983), '/tcp/8000', ...opened)).stdout).toStartWith('HTTP/1.1 101 ');
  const stream = await curl(domain, '/events/stream', ...key(), '--no-buffer', '--max-time', '3');
  expect(stream.stdout).toContain('event: ready');
});
