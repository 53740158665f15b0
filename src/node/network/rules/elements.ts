/** The elements of a set or map as nft declares them; nothing if there are none. */
export function elements(list: string[]): string {
  return list.length > 0 ? `elements = { ${list.join(', ')} }` : '';
}
