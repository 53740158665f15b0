import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { randomHex } from '../../base/crypto/secret.ts';
import { assetHeaders, pageHeaders } from './headers.ts';

/** Answers requests for pages that it has; null for all others. */
export type Pages = (request: Request) => Response | null;

const prefix = '/dashboard';
const nonceBytes = 16;
/** Placeholder in the built page for the nonce of each answer. */
const nonceMark = '__NONCE__';

const contentTypes: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

/**
 * A file in memory. It is compressed at the first request that accepts this, not at the start, which would take longer.
 */
export type Compressible = { bytes: Uint8Array<ArrayBuffer>; gzipped(): Uint8Array<ArrayBuffer> };

type Asset = Compressible & { contentType: string; isCompressed: boolean };

/**
 * The built dashboard, held in memory: a process that may no longer read the checkout serves it. Every path below
 * `/dashboard` is the page, which does its own routing, except the files in `/dashboard/assets`. Null where it is not
 * built.
 */
export function loadDashboard(folder: string): Pages | null {
  if (!existsSync(join(folder, 'index.html'))) return null;
  const page = readFileSync(join(folder, 'index.html'), 'utf8');
  const assets = new Map(
    readdirSync(join(folder, 'assets')).map(name => [name, assetOf(join(folder, 'assets', name))] as const),
  );
  return request => {
    const path = pathOf(request.url);
    if (path !== prefix && !path.startsWith(`${prefix}/`)) return null;
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return new Response(null, { status: 405, headers: { Allow: 'GET, HEAD' } });
    if (path.startsWith(`${prefix}/assets/`))
      return answerAsset(assets.get(path.slice(`${prefix}/assets/`.length)), request);
    const nonce = randomHex(nonceBytes);
    return new Response(page.replaceAll(nonceMark, nonce), { headers: pageHeaders(nonce) });
  };
}

function answerAsset(asset: Asset | undefined, request: Request): Response {
  if (!asset) return new Response(null, { status: 404, headers: { 'Cache-Control': 'no-store' } });
  const headers = { ...assetHeaders(asset.contentType), Vary: 'Accept-Encoding' };
  const takesGzip = /\bgzip\b/.test(request.headers.get('accept-encoding') ?? '');
  return takesGzip && !asset.isCompressed
    ? new Response(asset.gzipped(), { headers: { ...headers, 'Content-Encoding': 'gzip' } })
    : new Response(asset.bytes, { headers });
}

function assetOf(path: string): Asset {
  const extension = extname(path);
  return {
    ...compressible(readFileSync(path)),
    contentType: contentTypes[extension] ?? 'application/octet-stream',
    isCompressed: extension === '.woff2',
  };
}

/** Bytes that can be served compressed. */
export function compressible(content: Uint8Array): Compressible {
  const bytes = new Uint8Array(content);
  let gzipped: Uint8Array<ArrayBuffer> | undefined;
  return { bytes, gzipped: () => (gzipped ??= new Uint8Array(gzipSync(bytes))) };
}

/** The raw path of a request; if the Host is invalid, Bun gives the URL without its origin. */
export function pathOf(url: string): string {
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2);
  return /^[^?#]*/.exec(url.slice(start))?.[0] ?? '/';
}
