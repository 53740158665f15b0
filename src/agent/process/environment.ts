import type { User } from '../sandbox/users.ts';

/** Where programs are found if nobody says otherwise. */
export const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The whole environment of a process; what comes later wins: the user's, the sandbox's, the call's. Nothing of the agent's own is in it. */
export function processEnvironment(user: User, sandbox: Record<string, string>, call: Record<string, string>): Record<string, string> {
  return { PATH: defaultPath, HOME: user.home, USER: user.name, LOGNAME: user.name, ...sandbox, ...call };
}
