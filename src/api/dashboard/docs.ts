import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { compressible, type Compressible, type Pages, pathOf } from './files.ts';
import { docsHeaders } from './headers.ts';

const prefix = '/docs';
const contentTypes: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.json': 'application/json',
};

type Page = Compressible & { contentType: string };

/**
 * The built documentation, held in memory: a process that may no longer read the checkout serves it at `/docs/`. Null
 * where it is not built.
 */
export function loadDocs(folder: string): Pages | null {
  if (!existsSync(join(folder, 'index.html'))) return null;
  const pages = new Map<string, Page>();
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (statSync(join(folder, name)).isFile()) pages.set(`${prefix}/${name}`, pageOf(join(folder, name)));
  }
  return request => {
    const path = pathOf(request.url);
    if (path !== prefix && !path.startsWith(`${prefix}/`)) return null;
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return new Response(null, { status: 405, headers: { Allow: 'GET, HEAD' } });
    // Links in a page are relative to its folder.
    if (path === prefix) return new Response(null, { status: 308, headers: { Location: `${prefix}/` } });
    return answer(pages.get(path === `${prefix}/` ? `${prefix}/index.html` : path), request);
  };
}

function answer(page: Page | undefined, request: Request): Response {
  if (!page)
    return new Response('There is no such page. All of them: /docs/\n', { status: 404, headers: docsHeaders() });
  // Browsers ask for a page again each time, and get it again only when an upgrade has changed it.
  const tag = tagOf(page);
  const headers = { ...docsHeaders(page.contentType), ETag: tag, Vary: 'Accept-Encoding' };
  if (request.headers.get('if-none-match') === tag) return new Response(null, { status: 304, headers });
  return /\bgzip\b/.test(request.headers.get('accept-encoding') ?? '')
    ? new Response(page.gzipped(), { headers: { ...headers, 'Content-Encoding': 'gzip' } })
    : new Response(page.bytes, { headers });
}

function pageOf(path: string): Page {
  const contentType = contentTypes[extname(path)] ?? 'application/octet-stream';
  return { ...compressible(readFileSync(path)), contentType };
}

/** Weak: the tag is the same whether the page is compressed or not. */
const tagOf = ({ bytes }: Page) => `W/"${createHash('sha256').update(bytes).digest('hex').slice(0, 32)}"`;
