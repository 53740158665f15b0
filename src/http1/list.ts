/**
 * The members of a comma-separated list (RFC 9110 5.6.1) in lower case, without empty ones. No members if the field is
 * absent.
 */
export function listOf(value: string | undefined): string[] {
  if (value === undefined) return [];
  return value
    .toLowerCase()
    .split(',')
    .map(member => member.trim())
    .filter(member => member !== '');
}

/** Whether a comma-separated list holds `token` in any case; `token` itself is in lower case. */
export function listHas(value: string | undefined, token: string): boolean {
  if (value === undefined) return false;
  // Most lists have one token.
  if (!value.includes(',')) return value.length === token.length && value.toLowerCase() === token;
  return listOf(value).includes(token);
}
