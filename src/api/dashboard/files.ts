import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { randomHex } from '../../base/crypto/secret.ts';
import { assetHeaders, pageHeaders } from './headers.ts';

/** Answers requests of pages that it has; null for all others. */
export type Pages = (request: Request) => Response | null;

const prefix = '/dashboard';
const nonceBytes = 16;
/** What the built page has where the nonce of each answer goes. */
const nonceMark = '__NONCE__';

const contentTypes: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

/**
 * A file in memory. It is compressed when somebody takes it so for the first time: at a start nobody waits for
 * that.
 */
export type Compressible = { bytes: Uint8Array<ArrayBuffer>; gzipped(): Uint8Array<ArrayBuffer> };

type Asset = Compressible & { contentType: string; isCompressed: boolean };

/**
 * The built dashboard, read whole into memory: a process that may not read the checkout any more serves it. Every path
 * below `/dashboard` is the page, which finds its own way, but for the files in `/dashboard/assets`. Null where it is
 * not built.
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

/** Bytes that may be asked for compressed. */
export function compressible(content: Uint8Array): Compressible {
  const bytes = new Uint8Array(content);
  let gzipped: Uint8Array<ArrayBuffer> | undefined;
  return { bytes, gzipped: () => (gzipped ??= new Uint8Array(gzipSync(bytes))) };
}

/** The raw path of a request; with a Host that is none, Bun gives the URL without its origin. */
export function pathOf(url: string): string {
  const start = url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('//') + 2);
  return /^[^?#]*/.exec(url.slice(start))?.[0] ?? '/';
}
