import type { User } from '../sandbox/users.ts';

/** `PATH` unless somebody sets another. */
const defaultPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Text is UTF-8. Every C library has this locale without a package; musl knows no other. */
const defaultLocale = 'C.UTF-8';

/**
 * The whole environment of a process: the user's, the sandbox's, then the call's; later ones win. Nothing comes from
 * the agent itself.
 */
export function processEnvironment(
  user: User,
  sandbox: Record<string, string>,
  call: Record<string, string>,
): Record<string, string> {
  return {
    PATH: defaultPath,
    LANG: defaultLocale,
    HOME: user.home,
    USER: user.name,
    LOGNAME: user.name,
    ...sandbox,
    ...call,
  };
}
