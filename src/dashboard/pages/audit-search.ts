/** What the URL says of the audit page. */
export type AuditSearch = { operation?: string };

/** Reads the search of a URL that anybody may have written. */
export function readAuditSearch(raw: Record<string, unknown>): AuditSearch {
  const { operation } = raw;
  return typeof operation === 'string' && operation !== '' ? { operation } : {};
}
