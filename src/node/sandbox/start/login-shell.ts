/** Where every login shell searches for programs. */
const standardFolders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];

/**
 * A command for bash as a login shell. Distributions' profiles set PATH anew: this puts the folders of the
 * environment's PATH, apart from the system's own, in front again, so that programs are found where an image or `ENV
 * PATH` says.
 */
export function loginShell(command: string, env: Record<string, string>): [string, ...string[]] {
  const own = (env['PATH'] ?? '').split(':').filter(folder => folder !== '' && !standardFolders.includes(folder));
  const found = own.length === 0 ? '' : `PATH='${own.join(':').replaceAll("'", `'\\''`)}':"$PATH"; `;
  return ['/bin/bash', '-l', '-c', found + command];
}
