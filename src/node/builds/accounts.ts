import { readInView } from './read-in-view.ts';

export type Account = { name: string; uid: number; gid: number; home: string };

/** The users and groups of a file system, as its own files say. */
export type Accounts = {
  user(nameOrId: string): Account | undefined;
  groupId(nameOrId: string): number | undefined;
};

const fileBytesMax = 1 << 20;

export function readAccounts(view: string): Accounts {
  const rows = (path: string) => (readInView(view, path, fileBytesMax) ?? '').split('\n').map(line => line.split(':'));
  const users = rows('etc/passwd');
  const groups = rows('etc/group');
  const account = ([name = '', , uid, gid, , home = '']: string[]): Account => ({ name, uid: Number(uid), gid: Number(gid), home: home || '/' });
  const number = (text: string) => (/^\d{1,5}$/.test(text) ? Number(text) : undefined);
  return {
    user(nameOrId) {
      const row = users.find(([name]) => name === nameOrId) ?? users.find(([, , uid]) => uid === nameOrId);
      if (row && row.length >= 6) return account(row);
      // Every system has root, with or without a file that says so; and an ID needs no name.
      if (nameOrId === 'root') return { name: 'root', uid: 0, gid: 0, home: '/root' };
      const id = number(nameOrId);
      return id === undefined ? undefined : { name: nameOrId, uid: id, gid: id, home: '/' };
    },
    groupId(nameOrId) {
      const row = groups.find(([name]) => name === nameOrId);
      return row ? Number(row[2]) : nameOrId === 'root' ? 0 : number(nameOrId);
    },
  };
}
