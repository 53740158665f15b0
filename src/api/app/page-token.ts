import { AtollError } from '../../base/error.ts';
import type { Place } from '../store/template-list.ts';
import { formatTime } from '../../base/time.ts';
import { parseTime } from './clock.ts';

/** Opaque to clients: the place of the last item of a page, newest first. */
function formatPlace(place: Place): string {
  return Buffer.from(`${formatTime(place.atUs)}__${place.id}`).toString('base64url');
}

/** Reads a token of `formatPlace`. Throws `invalid`. */
export function parsePlace(token: string): Place {
  const [time = '', id = '', ...rest] = Buffer.from(token, 'base64url').toString().split('__');
  const atUs = parseTime(time);
  if (atUs === null || !Number.isSafeInteger(atUs) || !/^[a-z0-9_-]+$/.test(id) || rest.length > 0) {
    throw new AtollError('invalid', 'nextToken: is not a token that a page gave');
  }
  return { atUs, id };
}

/** Cuts `limit + 1` items that were asked for to a page, with the token of the next one. */
export function pageOf<T>(found: T[], limit: number, placeOf: (item: T) => Place): { items: T[]; nextToken: string | null } {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return { items, nextToken: found.length > limit && last !== undefined ? formatPlace(placeOf(last)) : null };
}
