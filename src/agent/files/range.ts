/** Part of a file, in bytes: from `start` up to, not including, `end`. */
export type Range = { start: number; end: number };

/**
 * The range of a file of `size` bytes that the header `Range` asks for (RFC 9110, 14). Undefined: the whole file; also
 * for several ranges and for unknown units, which a server may ignore. `unsatisfiable`: the file has no byte of it.
 */
export function readRange(header: string | null, size: number): Range | 'unsatisfiable' | undefined {
  const [unit, text = ''] = (header ?? '').split('=', 2);
  const [first = '', last = '', ...more] = text.split('-', 3).map(part => part.trim());
  if (
    unit !== 'bytes' ||
    !text.includes('-') ||
    more.length > 0 ||
    ![first, last].every(part => /^\d*$/.test(part)) ||
    first + last === ''
  )
    return undefined;
  if (first === '') {
    const start = Math.max(size - Number(last), 0);
    return Number(last) === 0 || size === 0 ? 'unsatisfiable' : { start, end: size };
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return undefined;
  if (start >= size) return 'unsatisfiable';
  return { start, end: last === '' ? size : Math.min(Number(last) + 1, size) };
}

/**
 * Whether the client already has the version of `modifiedMs` (`If-Modified-Since`). HTTP dates have no fractions of a
 * second.
 */
export function isUnmodified(request: Request, modifiedMs: number): boolean {
  const since = Date.parse(request.headers.get('if-modified-since') ?? '');
  return !request.headers.has('if-none-match') && Math.floor(modifiedMs / 1000) * 1000 <= since;
}

/** Whether the condition `If-Unmodified-Since` fails. */
export function isModifiedMeanwhile(request: Request, modifiedMs: number): boolean {
  const since = Date.parse(request.headers.get('if-unmodified-since') ?? '');
  return Math.floor(modifiedMs / 1000) * 1000 > since;
}

/** Whether `If-Range` allows a range: only for the version of which the client has a part. We send no entity tags. */
export function isRangeCurrent(request: Request, modifiedMs: number): boolean {
  const condition = request.headers.get('if-range');
  return condition === null || Math.floor(modifiedMs / 1000) * 1000 === Date.parse(condition);
}
