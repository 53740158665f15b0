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
 * (native/criu-children.c). With `withoutTls`, CRIU does not load what it would need for encryption
 * (native/criu-without-tls.c). To be written after `namespaceOwner`.
 */
export function criuEnvironment(helperBinary: string, { withoutTls }: { withoutTls?: boolean }): string[] {
  return [preload(helperBinary, withoutTls ? ['criu-without-tls.so'] : []), 'ATOLL_CHILDREN_END=1'];
}

const preload = (helperBinary: string, further: string[] = []) =>
  `LD_PRELOAD=${['namespace-owner.so', ...further].map(name => join(dirname(helperBinary), name)).join(':')}`;
