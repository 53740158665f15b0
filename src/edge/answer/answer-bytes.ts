import type { Answer } from './answer.ts';
import { errorPage } from './error-page.ts';
import { type Field, headBytes } from '../../http1/head-bytes.ts';
import type { RequestHead } from '../../http1/request-head.ts';
import { wantsPage } from './wants-page.ts';

const reasons: Readonly<Record<number, string>> = {
  204: 'No Content',
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  409: 'Conflict',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  505: 'HTTP Version Not Supported',
};

/** The edge's pages use their own inline style and load nothing else. */
const pagePolicy: Field = { name: 'Content-Security-Policy', value: "default-src 'none'; style-src 'unsafe-inline'" };

/**
 * The bytes of an answer to the request with `head` (null: the head could not be read): a page for people, JSON for
 * clients, and no body for a HEAD request.
 */
export function answerBytes(answer: Answer, head: RequestHead | null, close: boolean): Buffer {
  const { body, status } = answer;
  const fields: Field[] = Object.entries(answer.headers).map(([name, value]) => ({ name, value }));
  let content = '';
  if (body !== null) {
    const page = head !== null && wantsPage(head.fields);
    content = page ? errorPage(answer, body) : JSON.stringify(body);
    fields.push(
      { name: 'Content-Type', value: page ? 'text/html; charset=utf-8' : 'application/json' },
      { name: 'Content-Length', value: String(Buffer.byteLength(content)) },
      { name: 'Cache-Control', value: 'no-store' },
    );
    if (page) fields.push(pagePolicy);
  }
  if (close) fields.push({ name: 'Connection', value: 'close' });
  const bytes = headBytes(`HTTP/1.1 ${status} ${reasons[status] ?? 'Error'}`, fields);
  return head?.methodIs('HEAD') ? bytes : Buffer.concat([bytes, Buffer.from(content)]);
}
