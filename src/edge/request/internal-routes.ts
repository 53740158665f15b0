const internal = new Set(['init', 'freeze', 'unfreeze', 'collapse', 'fsfreeze', 'fsthaw', 'upgrade']);
/** How often a path is decoded at most: a doubly encoded path must not reach a server that decodes twice. */
const decodingsMax = 3;

/**
 * True if any reading of a request target is one of the agent's routes that only the platform may call. The target is
 * cleaned as a careful server would do it (percent-decoding, empty and dot segments, backslashes) and compared without
 * regard to case: better to refuse one path too many than one too few.
 */
export function isInternalRoute(target: string): boolean {
  let path = target.replace(/[?#].*$/s, '');
  for (let decodings = 0; decodings <= decodingsMax; decodings++) {
    if (internal.has(cleaned(path))) return true;
    if (!path.includes('%')) return false;
    path = path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  return false;
}

/**
 * The path's segments below the root, in lower case, without `.`, `..`, empty segments and anything after a `;`, `?`,
 * `#` or NUL.
 */
function cleaned(path: string): string {
  const segments: string[] = [];
  for (const raw of path.replace(/[?#\0].*$/s, '').split(/[\\/]/)) {
    const segment = raw.replace(/;.*$/s, '').trim();
    if (segment === '..') segments.pop();
    else if (segment !== '' && segment !== '.') segments.push(segment.toLowerCase());
  }
  return segments.join('/');
}
