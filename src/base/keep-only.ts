/**
 * Removes from a map what has none of these keys, each of which is there once. Mostly nothing is to be removed: then no
 * set is made of hundreds of keys.
 */
export function keepOnly<Key>(map: Map<Key, unknown>, keys: readonly Key[]): void {
  let kept = 0;
  for (const key of keys) if (map.has(key)) kept++;
  if (kept === map.size) return;
  const set = new Set(keys);
  for (const key of map.keys()) if (!set.has(key)) map.delete(key);
}
