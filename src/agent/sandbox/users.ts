import { AtollError } from '../../base/error.ts';
import { readSmallFile } from './small-file.ts';

/** A user that processes run as. */
export type User = {
  name: string;
  uid: number;
  gid: number;
  /** Supplementary groups, including `gid`. */
  groups: number[];
  home: string;
};

type Account = { name: string; uid: number; gid: number; home: string };

/** Names by number, for the owners of files. */
export type OwnerNames = { user(uid: number): string; group(gid: number): string };

/**
 * The user called `name` in the sandbox's `/etc/passwd`. Numbers (`1000`, `1000:100`), which images may use for their
 * user, need no entry there; nor does root, so that a root file system without users works. Nothing is cached: the
 * sandbox may change its users. Errors: `unauthenticated`, with a text that clients compare.
 */
export function findUser(name: string): User {
  const accounts = readAccounts();
  const account = accounts.find(one => one.name === name) ?? numbered(name, accounts);
  if (account) return { ...account, groups: groupsOf(account) };
  if (name === 'root') return { name, uid: 0, gid: 0, groups: [0], home: '/root' };
  throw new AtollError('unauthenticated', `invalid username: '${name}'`);
}

/** Looks up any number of names in one reading of the lists. */
export function readOwnerNames(): OwnerNames {
  const users = new Map(readAccounts().map(({ name, uid }) => [uid, name]));
  const groups = new Map(readGroups().map(({ name, gid }) => [gid, name]));
  return { user: uid => users.get(uid) ?? String(uid), group: gid => groups.get(gid) ?? String(gid) };
}

function numbered(name: string, accounts: Account[]): Account | undefined {
  const [, uidText, gidText] = /^(\d{1,10})(?::(\d{1,10}))?$/.exec(name) ?? [];
  if (uidText === undefined) return undefined;
  const uid = Number(uidText);
  const known = accounts.find(one => one.uid === uid) ?? { name, uid, gid: 0, home: '/' };
  return gidText === undefined ? known : { ...known, gid: Number(gidText) };
}

function readAccounts(): Account[] {
  return lines('/etc/passwd').flatMap(line => {
    const [name, , uid, gid, , home] = line.split(':');
    return name && isNumber(uid) && isNumber(gid)
      ? [{ name, uid: Number(uid), gid: Number(gid), home: home || '/' }]
      : [];
  });
}

function readGroups(): { name: string; gid: number; members: string[] }[] {
  return lines('/etc/group').flatMap(line => {
    const [name, , gid, members = ''] = line.split(':');
    return name && isNumber(gid) ? [{ name, gid: Number(gid), members: members.split(',') }] : [];
  });
}

const groupsOf = ({ name, gid }: Account): number[] => [
  ...new Set([
    gid,
    ...readGroups()
      .filter(group => group.members.includes(name))
      .map(group => group.gid),
  ]),
];

const lines = (path: string): string[] => (readSmallFile(path) ?? '').split('\n');
const isNumber = (text: string | undefined): text is string => text !== undefined && /^\d{1,10}$/.test(text);
