import type { BodyKind } from './body.ts';
import { listOf, valuesOf, type Head } from './head.ts';

export type ResponseHead = {
  status: number;
  body: { kind: BodyKind; length: number };
  length: number;
};

/** Understands a response's head, as far as to know where the response ends. `method` is that of its request. */
export function readResponse(head: Head, method: string): ResponseHead | undefined {
  const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(head.startLine)?.[1]);
  if (!(status >= 100)) return undefined;
  return { status, length: head.length, body: bodyOf(head, method, status) ?? { kind: 'close', length: 0 } };
}

/** RFC 9112 6.3, for responses; undefined: until the connection ends. */
function bodyOf(head: Head, method: string, status: number): ResponseHead['body'] | undefined {
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304) return { kind: 'none', length: 0 };
  const codings = listOf(head.fields, 'transfer-encoding');
  if (codings.length > 0) return codings.at(-1) === 'chunked' ? { kind: 'chunked', length: 0 } : undefined;
  const lengths = new Set(valuesOf(head.fields, 'content-length'));
  const [length = ''] = lengths;
  return lengths.size === 1 && /^\d{1,15}$/.test(length) ? { kind: 'length', length: Number(length) } : undefined;
}
