/**
 * Removes all other keys from a map; each of the given keys occurs once. Mostly there is nothing to remove: then no set
 * of hundreds of keys is made.
 */
export function keepOnly<Key>(map: Map<Key, unknown>, keys: readonly Key[]): void {
  let kept = 0;
  for (const key of keys) if (map.has(key)) kept++;
  if (kept === map.size) return;
  const set = new Set(keys);
  for (const key of map.keys()) if (!set.has(key)) map.delete(key);
}
