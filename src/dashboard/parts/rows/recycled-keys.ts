import { useRef } from 'react';

/** Keys by the ID of what they were given to, in the order of the rows, and how many there have been. */
type Given = { keys: ReadonlyMap<string, number>; made: number };

/**
 * Keys for rows: where all of them are others than those that were drawn before, they take over their elements, and the
 * browser changes texts instead of making rows. What a row remembers then has to go by the ID of what it shows.
 */
export function useRecycledKeys(ids: readonly string[]): ReadonlyMap<string, number> {
  const given = useRef<Given>({ keys: new Map(), made: 0 });
  given.current = recycledKeys(given.current, ids);
  return given.current.keys;
}

/** Keys for these IDs, by those that were given before. */
export function recycledKeys({ keys, made }: Given, ids: readonly string[]): Given {
  // Elements of rows that stay among others would have to be moved, which costs more than new ones.
  const free = ids.some(id => keys.has(id)) ? [] : [...keys.values()];
  let next = made;
  const own = new Map(ids.map((id, index) => [id, keys.get(id) ?? free[index] ?? next++]));
  return { keys: own, made: next };
}
