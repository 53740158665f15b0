import { afterAll, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { currentAccount, ownerOf, readAccounts } from './accounts.ts';
import { openRoot } from './layer/root.ts';

const dir = mkdtempSync(join(tmpdir(), 'atoll-accounts-'));
afterAll(() => rmSync(dir, { recursive: true }));

/** The accounts of a file system with these files; builds in it run as ann. */
function accountsOf(passwd: string[] | undefined, group: string[] = []) {
  const top = mkdtempSync(join(dir, 'top-'));
  mkdirSync(join(top, 'etc'));
  if (passwd) writeFileSync(join(top, 'etc/passwd'), passwd.join('\n'));
  writeFileSync(join(top, 'etc/group'), group.join('\n'));
  using view = openRoot(top);
  return readAccounts(view);
}

const passwd = [
  'root:x:0:0:root:/home/of-root:/bin/sh',
  'ann:x:1000:100:Ann:/home/ann:/bin/sh',
  'bob:x:1001:1001::relative:/bin/sh',
  '7:x:1002:1002::/home/seven:/bin/sh',
  'far:x:65535:65535::/far',
  'beyond:x:65536:1::/beyond:/bin/sh',
  'odd:x:1:group::/odd:/bin/sh',
  'short:x:5:5:',
];
const group = ['root:x:9:', 'users:x:100:ann', 'staff:x:50:', 'ann:x:1100:', 'broken:x:many:', '8:x:88:'];
const accounts = accountsOf(passwd, group);

test('a user is found by name, then by ID', () => {
  expect(accounts.user('ann')).toEqual({ name: 'ann', uid: 1000, gid: 100, home: '/home/ann' });
  expect(accounts.user('1000')).toEqual({ name: 'ann', uid: 1000, gid: 100, home: '/home/ann' });
  expect(accounts.user('7')).toMatchObject({ uid: 1002, home: '/home/seven' });
  expect(accounts.user('far')).toMatchObject({ uid: 65_535, gid: 65_535, home: '/far' });
  expect(accounts.user('root')).toMatchObject({ uid: 0, home: '/home/of-root' });
  expect(accounts.user('bob')).toMatchObject({ home: '/' });
});

test('an ID needs no name, and a name needs a user', () => {
  expect(accounts.user('4321')).toEqual({ name: '4321', uid: 4321, gid: 4321, home: '/' });
  expect(accounts.user('65535')).toMatchObject({ name: 'far' });
  for (const name of ['nobody', '65536', '100000', '-1', '1.5', '', 'beyond', 'odd', 'short'])
    expect([name, accounts.user(name)]).toEqual([name, undefined]);
});

test('root is there without a file that says so', () => {
  const none = accountsOf(undefined);
  expect(none.user('root')).toEqual({ name: 'root', uid: 0, gid: 0, home: '/root' });
  expect(none.groupId('root')).toBe(0);
  expect(none.user('ann')).toBeUndefined();
});

test('a group is found by name, and is an ID else', () => {
  const ids = ['staff', 'root', '8', '51', 'broken', 'nobody', '65536'].map(name => accounts.groupId(name));
  expect(ids).toEqual([50, 9, 88, 51, undefined, undefined, undefined]);
});

test('a build whose user is missing has the IDs of root until a command reports it', () => {
  expect(currentAccount(accounts, 'nobody')).toEqual({ name: 'nobody', uid: 0, gid: 0, home: '/' });
  expect(currentAccount(accounts, 'bob')).toMatchObject({ uid: 1001 });
});

test('an owner is the current user, a name, a name with a group, or numbers', () => {
  const current = currentAccount(accounts, 'bob');
  const owners: Record<string, [number, number]> = {
    ...{ '': [1001, 1001], ann: [1000, 1100], far: [65_535, 65_535], 'ann:': [1000, 1100], 'ann:staff': [1000, 50] },
    ...{ '12': [12, 12], '12:13': [12, 13], 'bob:8': [1001, 88] },
  };
  for (const [owner, [uid, gid]] of Object.entries(owners))
    expect([owner, ownerOf(accounts, current, owner)]).toEqual([owner, { uid, gid }]);
  expect(() => ownerOf(accounts, current, 'nobody')).toThrow('there is no user nobody to own the files');
  expect(() => ownerOf(accounts, current, 'ann:nobody')).toThrow('there is no group nobody to own the files');
  expect(() => ownerOf(accounts, current, ':staff')).toThrow(expect.objectContaining({ code: 'invalid' }));
});

test('a file that is too long is not read', () => {
  const line = 'ann:x:1000:100:Ann:/home/ann:/bin/sh\n';
  const most = line.padEnd(1 << 20, '#');
  expect(accountsOf([most]).user('ann')).toMatchObject({ uid: 1000 });
  expect(accountsOf([`${most}#`]).user('ann')).toBeUndefined();
});
