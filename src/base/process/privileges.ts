import { dlopen } from 'bun:ffi';

const PR_SET_PDEATHSIG = 1;
const PR_SET_NO_NEW_PRIVS = 38;
const SIGKILL = 9;

const { setgroups, setresgid, setresuid, prctl } = dlopen('libc.so.6', {
  setgroups: { args: ['u64', 'ptr'], returns: 'int' },
  setresgid: { args: ['u32', 'u32', 'u32'], returns: 'int' },
  setresuid: { args: ['u32', 'u32', 'u32'], returns: 'int' },
  prctl: { args: ['int', 'u64', 'u64', 'u64', 'u64'], returns: 'int' },
}).symbols;

/**
 * Gives up root for good, in every thread, and becomes the user and group of that number, without other groups. The
 * process still ends with its parent, although the kernel forgets that when the user changes.
 */
export function dropPrivileges(userId: number): void {
  const none = Buffer.alloc(8);
  const steps: [string, number][] = [
    ['setgroups', setgroups(0, none)],
    ['setresgid', setresgid(userId, userId, userId)],
    ['setresuid', setresuid(userId, userId, userId)],
    ['no_new_privs', prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)],
    ['pdeathsig', prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)],
  ];
  const failed = steps.find(([, result]) => result !== 0);
  if (failed) throw new Error(`the process could not give up its privileges: ${failed[0]} failed`);
}
