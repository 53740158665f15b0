import type { Fields } from '../../http1/fields.ts';

const scripted = new Set(['cors', 'no-cors', 'same-origin', 'websocket']);

/** True when a person will see the answer, in a browser that navigates. Scripts and clients get JSON. */
export function wantsPage(fields: Fields): boolean {
  if (!/\b(?:Mozilla|Opera)\//.test(fields.text('user-agent') ?? '')) return false;
  const accept = (fields.list('accept') ?? '').toLowerCase();
  if (accept.includes('application/json') && !accept.includes('text/html')) return false;
  const mode = fields.text('sec-fetch-mode')?.toLowerCase();
  if (mode === undefined) return !fields.has('x-requested-with');
  return !scripted.has(mode);
}
