import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { AtollError, systemCodeOf } from '../../base/error.ts';
import { parseArguments } from '../terminal/arguments.ts';
import type { Command, Input, Terminal } from '../terminal/command.ts';
import type { Connect } from '../connection/connection.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';
import { withSandbox } from '../sandbox/open.ts';
import { tunnelEndOf } from './forward.ts';
import { openTunnel } from './open.ts';
import { lineOf, wordOf } from '../sandbox/exec.ts';

const sshPort = 22;
const defaultUser = 'user';
/** Suffix of the names that `ssh-config` makes known to OpenSSH's programs. */
const suffix = '.atoll';

/**
 * What `atoll ssh` finds on this machine: its own command line for other programs, and the file of this user's key for
 * sandboxes.
 */
type SshSettings = { program: string[]; keyFile: string };

/**
 * `atoll ssh` and `ssh-config`: OpenSSH's own client, and whatever is built on it, into a sandbox. The connection is a
 * tunnel that takes the sandbox's token, so host keys prove nothing more. The server is the template's (Dropbear in
 * `base`), because it must know the template's users, shells and terminals; it is started when somebody connects.
 */
export function sshCommands(request: PlatformRequest, connect: Connect, settings: SshSettings): Command[] {
  return [
    {
      name: 'ssh',
      usage: '[--user USER] SANDBOX_ID [COMMAND...]',
      summary: 'Opens a shell in a sandbox, or runs a command, by OpenSSH; ends with its exit code',
      async run(args) {
        const { values, positionals } = parseArguments(args, { user: { type: 'string', short: 'l' } }, [
          'SANDBOX_ID',
          '[COMMAND...]',
        ]);
        const [sandboxId = '', ...command] = positionals;
        const host = `${values.user ?? defaultUser}@${sandboxId}${suffix}`;
        return runSsh([...optionsOf(settings, sandboxId), host, ...command]);
      },
    },
    {
      name: 'ssh-config',
      usage: '',
      summary: `Prints lines for ~/.ssh/config: ssh, scp, sftp and editors reach SANDBOX_ID${suffix} then`,
      async run(args, terminal) {
        parseArguments(args, {});
        terminal.out(configText(settings));
        return 0;
      },
    },
    {
      name: 'ssh-proxy',
      usage: 'SANDBOX_ID [USER]',
      summary: 'Carries the bytes of an SSH connection between its input and output and a sandbox, for ProxyCommand',
      async run(args, terminal) {
        const { positionals } = parseArguments(args, {}, ['SANDBOX_ID', '[USER]']);
        const sandboxId = (positionals[0] ?? '').replace(suffix, '');
        const key = await publicKey(settings);
        await withSandbox(connect, sandboxId, async sandbox => {
          const [script, ...given] = [prepareScript, positionals[1] ?? defaultUser, key];
          const { exitCode, stderr } = await sandbox.commands
            .run(lineOf(['sh', '-c', script, 'sh', ...given]), { user: 'root' })
            .catch((error: { exitCode?: number; stderr?: string }) => {
              if (error.exitCode === undefined) throw error;
              return { exitCode: error.exitCode, stderr: error.stderr ?? '' };
            });
          if (exitCode !== 0)
            throw new AtollError('unavailable', stderr.trim() || `It could not be prepared (${exitCode}).`);
        });
        const tunnel = await openTunnel({ ...(await tunnelEndOf(request, connect, sandboxId)), port: sshPort });
        await Promise.all([pipeline(bytesOf(terminal.input), tunnel), pipeline(tunnel, writableOf(terminal.out))]);
        return 0;
      },
    },
  ];
}

/**
 * Admits `key` for a user, and starts a server unless one listens already: a second one finds the port taken and exits.
 */
const prepareScript = `set -e
home=$(getent passwd "$1" | cut -d: -f6) || true
if [ -z "$home" ]; then echo "There is no user $1 in this sandbox." >&2; exit 1; fi
mkdir -p "$home/.ssh"
keys="$home/.ssh/authorized_keys"
if ! grep -qxF "$2" "$keys" 2>/dev/null; then echo "$2" >> "$keys"; fi
chmod 700 "$home/.ssh"; chmod 600 "$keys"; chown -R "$1:" "$home/.ssh"
if command -v dropbear >/dev/null; then
  mkdir -p /etc/dropbear
  dropbear -R -s -p 127.0.0.1:22 >/dev/null 2>&1 || true
elif [ -x /usr/sbin/sshd ]; then
  mkdir -p /run/sshd; ssh-keygen -A >/dev/null; /usr/sbin/sshd -o ListenAddress=127.0.0.1 2>/dev/null || true
else
  echo "This sandbox has no SSH server: install dropbear or openssh-server in its template; base has one." >&2; exit 1
fi`;

function optionsOf({ program, keyFile }: SshSettings, sandboxId: string): string[] {
  const proxy = [...program, 'ssh-proxy', sandboxId, '%r'].map(wordOf).join(' ');
  return [
    `ProxyCommand=${proxy}`,
    // ssh_config(5): an argument that contains spaces may be enclosed in double quotes.
    `IdentityFile=${/\s/.test(keyFile) ? `"${keyFile}"` : keyFile}`,
    'IdentitiesOnly=yes',
    'StrictHostKeyChecking=no',
    'UserKnownHostsFile=/dev/null',
    'LogLevel=ERROR',
  ].flatMap(option => ['-o', option]);
}

function configText(settings: SshSettings): string {
  const options = optionsOf(settings, '%n').filter(word => word !== '-o');
  const lines = [`User=${defaultUser}`, ...options].map(option => `  ${option.replace('=', ' ')}\n`);
  return `Host *${suffix}\n${lines.join('')}`;
}

async function runSsh(args: string[]): Promise<number> {
  const child = spawn('ssh', args, { stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    child.once('error', error =>
      reject(
        systemCodeOf(error) === 'ENOENT'
          ? new AtollError('unavailable', 'There is no `ssh` on this machine: install openssh-client.')
          : error,
      ),
    );
    child.once('close', (code, signal) => resolve(code ?? (signal === null ? 1 : 255)));
  });
}

/** The public half of this user's key for sandboxes; the key is made when first needed. */
async function publicKey({ keyFile }: SshSettings): Promise<string> {
  if (!existsSync(keyFile)) {
    mkdirSync(dirname(keyFile), { recursive: true, mode: 0o700 });
    const child = spawn('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'atoll', '-f', keyFile], {
      stdio: 'ignore',
    });
    const status = await new Promise(resolve => child.once('error', () => resolve(-1)).once('close', resolve));
    if (status !== 0 && !existsSync(keyFile))
      throw new AtollError('unavailable', 'No key could be made by `ssh-keygen`: install openssh-client.');
  }
  return readFileSync(join(dirname(keyFile), `${keyFile.split('/').at(-1)}.pub`), 'utf8').trim();
}

function bytesOf(input: Input | undefined): Readable {
  return Readable.from(input?.chunks() ?? [], { objectMode: false });
}

function writableOf(out: Terminal['out']): Writable {
  return new Writable({
    write(chunk: Uint8Array, _, done) {
      out(chunk, done);
    },
  });
}
