import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { mustRun } from './program.ts';

/** How the kernel recognizes programs for the other machine (binfmt_misc), from the package qemu-user-static. */
const formatFile = '/usr/lib/binfmt.d/qemu-aarch64.conf';
const emulator = '/usr/bin/qemu-aarch64-static';
/** User IDs that a distribution's packages use. */
const ids = '0 0 65536';
const lifetimeSeconds = 3600;

/**
 * Runs a program that starts arm64 programs. They are emulated in their own user namespace, and nowhere else on this
 * machine: since Linux 6.7 each such namespace has its own list of formats.
 */
export async function mustRunForeign(argv: string[], options: { timeoutMs: number; log?: string }): Promise<void> {
  const holder = spawn('unshare', ['--user', 'sleep', String(lifetimeSeconds)], { stdio: 'ignore' });
  const end = () => holder.kill('SIGKILL');
  process.on('exit', end);
  try {
    await once(holder, 'spawn');
    const own = userNamespaceOf('self');
    while (userNamespaceOf(String(holder.pid)) === own) await new Promise(resolve => setTimeout(resolve, 10));
    for (const map of ['uid_map', 'gid_map']) writeFileSync(`/proc/${holder.pid}/${map}`, ids);
    const format = `${readFileSync(formatFile, 'utf8').split(':').slice(0, -2).join(':')}:${emulator}:F`;
    const script =
      'mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc; printf %s "$0" > /proc/sys/fs/binfmt_misc/register; exec "$@"';
    const inside = ['nsenter', `--user=/proc/${holder.pid}/ns/user`, 'unshare', '--mount'];
    await mustRun([...inside, 'sh', '-ec', script, format, ...argv], options);
  } finally {
    end();
    process.off('exit', end);
  }
}

const userNamespaceOf = (process: string) => readlinkSync(`/proc/${process}/ns/user`);
