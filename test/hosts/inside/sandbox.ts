import { Sandbox } from 'e2b';
import { availableParallelism, uptime } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { getByHost } from '../../support/by-host.ts';
import { waitFor } from '../../support/process.ts';
import { type Feature, Refused, same } from './feature.ts';

const waitMs = 60_000;

/** A sandbox for one examination, killed at its end. */
export async function withSandbox<T>(use: (sandbox: Sandbox) => Promise<T>, template = 'base'): Promise<T> {
  const sandbox = await Sandbox.create(template, { timeoutMs: 600_000, requestTimeoutMs: 120_000 });
  try {
    return await use(sandbox);
  } finally {
    await sandbox.kill();
  }
}

/** What a person does in a sandbox. */
export const sandboxFeatures: Feature[] = [
  {
    name: 'commands as user, root and by sudo',
    look: () =>
      withSandbox(async sandbox => {
        const say = async (command: string, user?: string) =>
          (await sandbox.commands.run(command, { timeoutMs: waitMs, ...(user && { user }) })).stdout.trim();
        same(await say('id -un'), 'user', 'the default user');
        same(await say('id -u', 'root'), '0', 'root');
        same(await say('sudo id -u'), '0', 'sudo');
        same(
          await say('stat -c "%U %G" /etc/passwd /home/user | tr "\\n" " "'),
          'root root user user',
          'owners of layers',
        );
        same(
          await say(
            'sudo sh -c "touch /usr/bin/new && chown user /usr/bin/new && mv /usr/share/doc /usr/share/doc2" && stat -c %U /usr/bin/new',
          ),
          'user',
          'changing what layers hold',
        );
      }),
  },
  {
    name: 'files',
    look: () =>
      withSandbox(async sandbox => {
        await sandbox.files.write('notes/today.txt', 'first');
        same(await sandbox.files.read('notes/today.txt'), 'first', 'the file');
        await sandbox.files.rename('notes/today.txt', 'notes/then.txt');
        same(
          (await sandbox.files.list('notes')).map(({ name }) => name),
          ['then.txt'],
          'the folder',
        );
        const bytes = new Uint8Array(4 << 20).fill(7);
        await sandbox.files.write('large', bytes.buffer);
        same((await sandbox.files.read('large', { format: 'bytes' })).length, bytes.length, 'a large file');
      }),
  },
  {
    name: 'watching files',
    look: () =>
      withSandbox(async sandbox => {
        const seen: string[] = [];
        await sandbox.files.makeDir('watched');
        const handle = await sandbox.files.watchDir('watched', event => void seen.push(`${event.type} ${event.name}`));
        await sandbox.files.write('watched/new', 'x');
        await waitFor('the event', () => seen.includes('create new') && seen.includes('write new'), waitMs);
        await handle.stop();
      }),
  },
  {
    name: 'its own processors, memory and clock',
    look: () =>
      withSandbox(async sandbox => {
        const { cpuCount, memoryMB } = await sandbox.getInfo();
        const processors = Math.min(cpuCount, availableParallelism());
        const script =
          "nproc; grep -c ^processor /proc/cpuinfo; awk '/^MemTotal/ {print $2}' /proc/meminfo; cut -d. -f1 /proc/uptime";
        const { stdout } = await sandbox.commands.run(script, { timeoutMs: waitMs });
        const [counted, listed, memoryKiB, age = 0] = stdout.trim().split('\n').map(Number);
        same([counted, listed, memoryKiB], [processors, processors, memoryMB * 1024], 'processors and KiB');
        // The machine has been up for longer than the platform, which starts sandboxes.
        if (uptime() - age < 5) throw new Refused('its clock is the host’s');
        return `${processors} processors, ${memoryMB} MiB, started ${age} s ago`;
      }),
  },
  {
    name: 'terminal',
    look: () =>
      withSandbox(async sandbox => {
        let screen = '';
        const terminal = await sandbox.pty.create({
          cols: 80,
          rows: 24,
          timeoutMs: 0,
          onData: data => void (screen += new TextDecoder().decode(data)),
        });
        await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('echo $((6 * 7)); tty\n'));
        await waitFor('the terminal’s answer', () => /42\r\n\/dev\/pts\/\d/.test(screen), waitMs);
        await terminal.kill();
      }),
  },
  {
    name: 'ports',
    look: () =>
      withSandbox(async sandbox => {
        await sandbox.commands.run('python3 -m http.server 8000 --bind 127.0.0.1', { background: true, timeoutMs: 0 });
        const url = process.env['E2B_API_URL'] ?? '';
        await waitFor(
          'the server',
          async () => (await getByHost(url, sandbox.getHost(8000), '/')).status === 200,
          waitMs,
        );
      }),
  },
  {
    name: 'the host and other sandboxes are out of reach',
    look: () =>
      withSandbox(one =>
        withSandbox(async other => {
          await other.commands.run('python3 -m http.server 8000', { background: true, timeoutMs: 0 });
          const listens = () =>
            other.commands.run('exec 3<>/dev/tcp/127.0.0.1/8000', { timeoutMs: waitMs }).then(
              () => true,
              () => false,
            );
          while (!(await listens())) await sleep(200);
          const port = new URL(process.env['E2B_API_URL'] ?? '').port;
          const script = `import socket
for address in [('169.254.0.22', ${port}), ('169.254.0.22', 22), ('10.0.2.15', 22), ('10.0.2.2', 22), ('198.18.0.0', 8000), ('198.18.0.1', 8000), ('198.18.0.2', 8000), ('198.18.0.3', 8000), ('169.254.169.254', 80)]:
    try:
        socket.create_connection(address, 2).close()
        print('reached', *address)
    except OSError: pass
`;
          const { stdout } = await one.commands.run(`python3 -c "${script.replaceAll('"', '\\"')}"`, {
            timeoutMs: waitMs,
          });
          same(stdout, '', 'what was reached');
        }),
      ),
  },
];
