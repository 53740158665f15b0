import { posix } from 'node:path';
import type { Account, Accounts } from '../accounts.ts';

/** `path` seen from `base`; a `/` at its end stays, because it says that a directory is meant. */
export function joinPath(base: string, path: string): string {
  const joined = posix.normalize(path.startsWith('/') ? path : `/${base}/${path}`).replace(/^\/+/, '/');
  return path.endsWith('/') || path === '.' || path.endsWith('/.') ? joined.replace(/\/*$/, '/') : joined.replace(/(.)\/+$/, '$1');
}

/** The user that a build runs as. One that is missing is reported by the first command; until then it is nobody special. */
export function currentAccount(accounts: Accounts, user: string): Account {
  return accounts.user(user) ?? { name: user, uid: 0, gid: 0, home: '/' };
}
