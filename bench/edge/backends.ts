import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { issueCertificate, makeAuthority } from '../../src/base/crypto/certificate.ts';
import { familyOf } from '../measure/processes.ts';

export const bigFileBytes = 1 << 30;

/** A measured way: each leads to the same backend. `pids` are the processes in between. */
export type Way = {
  readonly name: string;
  readonly port: number;
  readonly tlsPort: number | null;
  readonly host: string;
  readonly pids: number[];
};

type Backends = AsyncDisposable & { readonly ways: Way[]; readonly sinkWays: Way[] };

/**
 * nginx as the backend (a fixed short answer, and a file of 1 GiB), a sink for uploads, and in front of both: nothing,
 * nginx as a single-process proxy, and the edge.
 */
export async function startBackends(): Promise<Backends> {
  const folder = mkdtempSync(join(tmpdir(), 'edge-bench-'));
  await using undo = new AsyncDisposableStack();
  undo.defer(() => rmSync(folder, { recursive: true, force: true }));
  const ended = <Child extends Bun.Subprocess>(child: Child): Child => {
    undo.defer(async () => {
      child.kill();
      await child.exited;
    });
    return child;
  };
  const pair = issueCertificate(makeAuthority('Bench', 5), ['localhost'], 5);
  const files = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') };
  writeFileSync(files.certFile, pair.certificate);
  writeFileSync(files.keyFile, pair.key);
  writeFileSync(join(folder, 'big'), '');
  truncateSync(join(folder, 'big'), bigFileBytes);
  const sink = ended(Bun.spawn([process.execPath, join(import.meta.dir, 'sink.ts')], { stdout: 'pipe' }));
  const sinkPort = await firstNumber(sink.stdout);
  const [backendPort, proxyPort, proxyTlsPort, sinkProxyPort] = [freePort(), freePort(), freePort(), freePort()];
  ended(
    startNginx(
      folder,
      'backend',
      `server { listen 127.0.0.1:${backendPort}; root ${folder}; location = / { return 200 "hello"; } }`,
    ),
  );
  const forward =
    'proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $host; proxy_buffering off; proxy_request_buffering off; client_max_body_size 0;';
  const proxy = ended(
    startNginx(
      folder,
      'proxy',
      `upstream backend { server 127.0.0.1:${backendPort}; keepalive 256; keepalive_requests 1000000000; }
     server { listen 127.0.0.1:${proxyPort}; listen 127.0.0.1:${proxyTlsPort} ssl; ssl_certificate ${files.certFile}; ssl_certificate_key ${files.keyFile}; location / { proxy_pass http://backend; ${forward} } }
     server { listen 127.0.0.1:${sinkProxyPort}; location / { proxy_pass http://127.0.0.1:${sinkPort}; ${forward} } }`,
    ),
  );
  const edge = ended(
    Bun.spawn([process.execPath, join(import.meta.dir, 'edge.ts'), files.certFile, files.keyFile], { stdout: 'pipe' }),
  );
  const [edgePort = 0, edgeTlsPort = 0] = await numbers(edge.stdout);
  await Promise.all([backendPort, proxyPort, sinkProxyPort].map(listening));
  const pids = { proxy: familyOf(proxy.pid), edge: [edge.pid] };
  const way = (name: string, port: number, tlsPort: number | null, upstream: number, between: number[]): Way => ({
    name,
    port,
    tlsPort,
    host: `${upstream}-bench.localhost`,
    pids: between,
  });
  const everything = undo.move();
  return {
    ways: [
      way('direct', backendPort, null, backendPort, []),
      way('nginx', proxyPort, proxyTlsPort, backendPort, pids.proxy),
      way('edge', edgePort, edgeTlsPort, backendPort, pids.edge),
    ],
    sinkWays: [
      way('direct', sinkPort, null, sinkPort, []),
      way('nginx', sinkProxyPort, null, sinkPort, pids.proxy),
      way('edge', edgePort, null, sinkPort, pids.edge),
    ],
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

function startNginx(folder: string, name: string, servers: string): Bun.Subprocess {
  const temps = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    kind => `${kind}_temp_path ${join(folder, `${name}-${kind}`)};`,
  );
  const config = join(folder, `${name}.conf`);
  writeFileSync(
    config,
    `user root; worker_processes 1; daemon off; pid ${join(folder, `${name}.pid`)}; error_log ${join(folder, `${name}.log`)};
     events { worker_connections 4096; }
     http { access_log off; sendfile on; keepalive_requests 1000000000; keepalive_timeout 600s; ${temps.join(' ')} ${servers} }`,
  );
  return Bun.spawn(['nginx', '-c', config, '-e', join(folder, `${name}.log`)], { stdout: 'ignore', stderr: 'inherit' });
}

function freePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

async function listening(port: number): Promise<void> {
  for (;;) {
    try {
      const socket = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } });
      socket.close();
      return;
    } catch {
      await Bun.sleep(20);
    }
  }
}

async function numbers(stream: ReadableStream<Uint8Array>): Promise<number[]> {
  const { value } = await stream.getReader().read();
  return new TextDecoder().decode(value).trim().split(' ').map(Number);
}

async function firstNumber(stream: ReadableStream<Uint8Array>): Promise<number> {
  return (await numbers(stream))[0] ?? 0;
}
