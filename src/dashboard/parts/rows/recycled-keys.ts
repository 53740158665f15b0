import { useRef } from 'react';

/** Keys by the ID of what they were given to, in row order, and how many were made so far. */
type Given = { keys: ReadonlyMap<string, number>; made: number };

/**
 * Keys for rows. If all rows differ from those drawn before, they take over the elements, and the browser changes texts
 * instead of making rows. What a row remembers must then depend on the ID of what it shows.
 */
export function useRecycledKeys(ids: readonly string[]): ReadonlyMap<string, number> {
  const given = useRef<Given>({ keys: new Map(), made: 0 });
  given.current = recycledKeys(given.current, ids);
  return given.current.keys;
}

/** Keys for these IDs, based on those given before. */
export function recycledKeys({ keys, made }: Given, ids: readonly string[]): Given {
  // If some rows stay, the others' elements would have to be moved, which costs more than new ones.
  const free = ids.some(id => keys.has(id)) ? [] : [...keys.values()];
  let next = made;
  const own = new Map(ids.map((id, index) => [id, keys.get(id) ?? free[index] ?? next++]));
  return { keys: own, made: next };
}
