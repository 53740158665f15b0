import { dirname, join } from 'node:path';

/**
 * Environment, as `NAME=value`, in which a program of ours makes user namespaces as the host's user `uid` instead of
 * as root (native/namespace-owner.c). The kernel's counts for each user then are counts for each sandbox: the
 * sandbox's own users count together as the user who made their namespace. The file is beside the helper.
 */
export function namespaceOwner(helperBinary: string, uid: number): string[] {
  return [preload(helperBinary), `ATOLL_NAMESPACE_OWNER=${uid}`];
}

/**
 * Environment, as `NAME=value`, in which processes that CRIU forks and that are no processes of a sandbox end with it
 * (native/criu-children.c).
 */
export function childrenEnd(helperBinary: string): string[] {
  return [preload(helperBinary), 'ATOLL_CHILDREN_END=1'];
}

const preload = (helperBinary: string) => `LD_PRELOAD=${join(dirname(helperBinary), 'namespace-owner.so')}`;
