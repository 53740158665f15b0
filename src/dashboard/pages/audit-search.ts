/** The audit page's state in the URL: entries of which operation, by whom, about what. */
export type AuditSearch = { operation?: string; actor?: string; target?: string };

/** Reads the search part of a URL, which anybody may have written. */
export function readAuditSearch(raw: Record<string, unknown>): AuditSearch {
  const { operation, actor, target } = raw;
  return {
    ...(typeof operation === 'string' && operation !== '' && { operation }),
    ...(typeof actor === 'string' && actor !== '' && { actor }),
    ...(typeof target === 'string' && target !== '' && { target }),
  };
}
