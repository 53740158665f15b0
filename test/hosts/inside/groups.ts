import { Sandbox } from 'e2b';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { waitFor } from '../../support/process.ts';
import { type Feature, lookAt, same } from './feature.ts';
import { withSandbox } from './sandbox.ts';

// Runs as root on a host of the laboratory, beside a platform: looks in the kernel's files for the effects of what
// clients do to sandboxes.
const commandMs = 120_000;
const waitMs = 60_000;
const root = '/sys/fs/cgroup';
const v2Alone = existsSync(join(root, 'cgroup.controllers'));

/** The cgroup of a sandbox in the hierarchy that has `controller`: a program with a unique name leads there. */
async function groupOf(sandbox: Sandbox, controller: string): Promise<string> {
  const seconds = String(4_000_000 + Math.floor(Math.random() * 1_000_000));
  await sandbox.commands.run(`sleep ${seconds}`, { background: true, timeoutMs: 0 });
  const pid = await waitFor('the program’s process', () => processOf(`sleep ${seconds}`), waitMs);
  const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().split('\n');
  const own = lines.map(line => line.split(':')).find(([, names]) => v2Alone || names?.split(',').includes(controller));
  // Whatever the agent makes below it, the limits are those of the sandbox's own cgroup.
  const path = /^\/atoll\d+\/[^/]+/.exec(own?.slice(2).join(':') ?? '')?.[0];
  if (path === undefined) throw new Error(`not in a group of the platform: ${lines.join(' ')}`);
  return v2Alone ? join(root, path) : join(root, controller, path);
}

const processOf = (command: string) =>
  readdirSync('/proc').find(
    name => /^\d+$/.test(name) && readOr(`/proc/${name}/cmdline`).replaceAll('\0', ' ').trim() === command,
  );

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

const number = (text: string, name: string) =>
  Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN);

await lookAt(
  [
    {
      name: 'groups: memory and processors are limited to what the API says',
      look: () =>
        withSandbox(async sandbox => {
          const { cpuCount, memoryMB } = await sandbox.getInfo();
          const [memory, cpu] = [await groupOf(sandbox, 'memory'), await groupOf(sandbox, 'cpu')];
          const seen = v2Alone
            ? [readOr(join(memory, 'memory.max')), readOr(join(cpu, 'cpu.max')).replace(' ', '\n')]
            : ['memory.limit_in_bytes', 'cpu.cfs_quota_us', 'cpu.cfs_period_us'].map((file, index) =>
                readOr(join(index === 0 ? memory : cpu, file)),
              );
          const [bytes, quotaUs, periodUs] = seen.join('').trim().split('\n').map(Number);
          same([bytes, (quotaUs ?? 0) / (periodUs ?? 1)], [memoryMB * 2 ** 20, cpuCount], 'bytes and processors');
          return `${memoryMB} MiB, ${cpuCount} processors`;
        }),
    },
    {
      name: 'groups: a memory kill is counted',
      look: () =>
        withSandbox(async sandbox => {
          const group = await groupOf(sandbox, 'memory');
          const kills = () =>
            v2Alone
              ? number(readOr(join(group, 'memory.events')), 'oom_kill')
              : number(readOr(join(group, 'memory.oom_control')), 'oom_kill');
          const before = kills();
          await sandbox.commands
            .run('python3 -c "x = bytearray(3 << 30)"', { timeoutMs: commandMs })
            .catch(() => 'killed');
          if (!(kills() > before)) throw new Error(`${before} kills before, ${kills()} after`);
        }),
    },
    {
      name: 'groups: a pause freezes, a resume thaws',
      async look() {
        const sandbox = await Sandbox.create({ timeoutMs: 600_000, requestTimeoutMs: commandMs });
        try {
          const group = await groupOf(sandbox, 'freezer');
          const frozen = () =>
            v2Alone
              ? number(readOr(join(group, 'cgroup.events')), 'frozen') === 1
              : readOr(join(group, 'freezer.state')).trim() === 'FROZEN';
          if (frozen()) throw new Error('frozen while it runs');
          let seen = false;
          let paused = false;
          const pause = sandbox.pause({ requestTimeoutMs: commandMs }).finally(() => void (paused = true));
          while (!seen && !(paused && !existsSync(group))) {
            seen = frozen();
            await sleep(5);
          }
          await pause;
          const back = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 600_000, requestTimeoutMs: commandMs });
          await back.commands.run('true', { timeoutMs: commandMs });
          if (!seen) throw new Error('never frozen until its memory was on the disk');
          if (existsSync(group) && frozen()) throw new Error('frozen after the resume');
        } finally {
          await Sandbox.kill(sandbox.sandboxId);
        }
      },
    },
    {
      name: 'groups: a kill removes the group, and no other',
      look: () =>
        withSandbox(async other => {
          const sandbox = await Sandbox.create({ timeoutMs: 600_000, requestTimeoutMs: commandMs });
          const [group, stays] = [await groupOf(sandbox, 'memory'), await groupOf(other, 'memory')];
          // Several processes, some of which ask not to be killed.
          await sandbox.commands.run('for i in 1 2 3 4 5; do (trap "" TERM INT HUP; sleep 3600) & done', {
            background: true,
            timeoutMs: 0,
          });
          await sandbox.kill();
          await waitFor('the group to be gone', () => !existsSync(group), waitMs);
          if (!existsSync(stays)) throw new Error('the other sandbox’s group is gone');
          await other.commands.run('true', { timeoutMs: commandMs });
        }),
    },
  ] satisfies Feature[],
  process.argv.slice(2),
);
process.exit(0);
