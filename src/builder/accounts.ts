import { AtollError } from '../base/error.ts';
import type { Root } from './layer/root.ts';
import { readText } from './read-text.ts';

/** A user of `/etc/passwd` (passwd(5)). */
type Account = { name: string; uid: number; gid: number; home: string };

/** The users and groups of a file system, according to its own files. */
type Accounts = { user(nameOrId: string): Account | undefined; groupId(nameOrId: string): number | undefined };

const fileBytesMax = 1 << 20;
/** User IDs that a sandbox has. */
const idMax = 65_535;

/**
 * Reads `/etc/passwd` and `/etc/group` of a file system. A file that is missing or larger than 1 MiB counts as empty.
 */
export function readAccounts(view: Root): Accounts {
  const rows = (path: string) =>
    readText(view, path, fileBytesMax)
      .split('\n')
      .map(line => line.split(':'));
  const users = rows('etc/passwd');
  const groups = rows('etc/group');
  const account = ([name = '', , uid, gid, , home = '']: string[]): Account | undefined => {
    const [user, group] = [idOf(uid ?? ''), idOf(gid ?? '')];
    return user === undefined || group === undefined
      ? undefined
      : { name, uid: user, gid: group, home: home.startsWith('/') ? home : '/' };
  };
  return {
    user(nameOrId) {
      const row = users.find(([name]) => name === nameOrId) ?? users.find(([, , uid]) => uid === nameOrId);
      const known = row && row.length >= 6 ? account(row) : undefined;
      if (known) return known;
      // Every system has root, whether or not a file says so; and an ID needs no name.
      if (nameOrId === 'root') return { name: 'root', uid: 0, gid: 0, home: '/root' };
      const id = idOf(nameOrId);
      return id === undefined ? undefined : { name: nameOrId, uid: id, gid: id, home: '/' };
    },
    groupId(nameOrId) {
      const row = groups.find(([name]) => name === nameOrId);
      return row ? idOf(row[2] ?? '') : nameOrId === 'root' ? 0 : idOf(nameOrId);
    },
  };
}

/** The user that a build runs as. A missing one is reported by the first command; until then its IDs are 0. */
export function currentAccount(accounts: Accounts, user: string): Account {
  return accounts.user(user) ?? { name: user, uid: 0, gid: 0, home: '/' };
}

/** `name` (with the group of that name, or else the user's own), `name:group`, or numbers. Empty: the current user. */
export function ownerOf(accounts: Accounts, current: Account, owner: string): { uid: number; gid: number } {
  if (owner === '') return { uid: current.uid, gid: current.gid };
  const [name = '', group] = owner.split(':');
  const user = accounts.user(name);
  if (!user) throw new AtollError('invalid', `there is no user ${name.slice(0, 200)} to own the files`);
  const gid = group === undefined || group === '' ? (accounts.groupId(name) ?? user.gid) : accounts.groupId(group);
  if (gid === undefined) throw new AtollError('invalid', `there is no group ${group?.slice(0, 200)} to own the files`);
  return { uid: user.uid, gid };
}

function idOf(text: string): number | undefined {
  return /^\d{1,5}$/.test(text) && Number(text) <= idMax ? Number(text) : undefined;
}
