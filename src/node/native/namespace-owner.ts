import { dirname, join } from 'node:path';

/**
 * Environment, as `NAME=value`, in which a program of ours makes user namespaces as the host's user `uid` instead of as
 * root (native/namespace-owner.c). What the kernel counts for each user it then counts for each sandbox by itself: the
 * sandbox's own users, all together, as the one who made their namespace. The file stands beside the helper.
 */
export function namespaceOwner(helperBinary: string, uid: number): string[] {
  return [preload(helperBinary), `ATOLL_NAMESPACE_OWNER=${uid}`];
}

/**
 * Environment, as `NAME=value`, in which what CRIU forks, and what is no process of a sandbox, ends with it
 * (native/criu-children.c).
 */
export function childrenEnd(helperBinary: string): string[] {
  return [preload(helperBinary), 'ATOLL_CHILDREN_END=1'];
}

const preload = (helperBinary: string) => `LD_PRELOAD=${join(dirname(helperBinary), 'namespace-owner.so')}`;
