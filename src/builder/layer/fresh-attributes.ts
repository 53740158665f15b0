import type { Attributes } from '../erofs/tree.ts';

/** 1980-01-02: programs that pack a directory (zip counts from 1980, in local time) don't accept 1970. Seconds. */
const madeSeconds = 315_619_200;

/**
 * The attributes of a directory that a step makes. The same step makes the same layer, so the time is always the same.
 */
export function freshAttributes(owner: Pick<Attributes, 'mode' | 'uid' | 'gid'>): Attributes {
  return { ...owner, mtimeSeconds: madeSeconds, mtimeNanoseconds: 0, xattrs: new Map() };
}
