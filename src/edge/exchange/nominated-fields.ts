import type { Fields } from '../../http1/fields.ts';

/** Naming these in Connection must not strip them: they decide about a message's framing or destination. */
const kept = new Set(['host', 'content-length', 'transfer-encoding', 'expect']);
const options = new Set(['', 'close', 'keep-alive', 'upgrade']);

/** The fields that a Connection field limits to this connection, in lower case; null if there are none. */
export function nominatedFields(fields: Fields): Set<string> | null {
  const value = fields.list('connection')?.toLowerCase();
  // Nearly always one option or none.
  if (value === undefined || options.has(value)) return null;
  const names = value.split(',').map(name => name.trim());
  const nominated = names.filter(name => !options.has(name) && !kept.has(name));
  return nominated.length === 0 ? null : new Set(nominated);
}
