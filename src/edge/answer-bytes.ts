import type { Answer } from './answer.ts';
import { errorPage } from './error-page.ts';
import type { RequestHead } from './http/request-head.ts';
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

/**
 * The bytes of an answer to the request with `head` (null: it could not be read): a page for people, JSON for clients,
 * no body for a HEAD request.
 */
export function answerBytes(answer: Answer, head: RequestHead | null, close: boolean): Buffer {
  const { body, status } = answer;
  const headers: Record<string, string> = { ...answer.headers };
  let content = '';
  if (body !== null) {
    const page = head !== null && wantsPage(head.fields);
    content = page ? errorPage(answer, body) : JSON.stringify(body);
    headers['Content-Type'] = page ? 'text/html; charset=utf-8' : 'application/json';
    headers['Content-Length'] = String(Buffer.byteLength(content));
    headers['Cache-Control'] = 'no-store';
    if (page) headers['Content-Security-Policy'] = "default-src 'none'; style-src 'unsafe-inline'";
  }
  if (close) headers.Connection = 'close';
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const sent = head?.methodIs('HEAD') ? '' : content;
  return Buffer.from(`HTTP/1.1 ${status} ${reasons[status] ?? 'Error'}\r\n${fields.join('')}\r\n${sent}`);
}
