import type { Attributes } from '../erofs/tree.ts';

/** 1980-01-02: programs that pack a directory reject 1970 (zip counts from 1980, in local time). Seconds. */
const madeSeconds = 315_619_200;

/**
 * The attributes of a directory that a step creates. The time is always the same, so that the same step makes the same
 * layer.
 */
export function freshAttributes(owner: Pick<Attributes, 'mode' | 'uid' | 'gid'>): Attributes {
  return { ...owner, mtimeSeconds: madeSeconds, mtimeNanoseconds: 0, xattrs: new Map() };
}
