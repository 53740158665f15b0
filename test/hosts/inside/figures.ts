import { Sandbox } from 'e2b';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mustRun } from '../lab/program.ts';
import { type Finding, idleFeature } from './feature.ts';

// Prints the cost of a create, a command and an idle sandbox, and of `crun run` on the same machine.
const runs = 15;
const idle = 8;
/** Longer than the pool takes to start another standby sandbox. */
const refillMs = 3_000;
const requestTimeoutMs = 120_000;

const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
const settle = (ms: number) => new Promise(resolve => setTimeout(resolve, ms));
const availableMiB = () => Number(/^MemAvailable:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]) / 1024;

async function times(work: () => Promise<unknown>, between = 0): Promise<number> {
  const taken: number[] = [];
  for (let run = 0; run < runs; run++) {
    const startedAt = performance.now();
    await work();
    taken.push(performance.now() - startedAt);
    await settle(between);
  }
  return median(taken);
}

/** MiB per item of the many that `make` makes. */
async function memoryOf(make: () => Promise<() => Promise<unknown>>): Promise<number> {
  await settle(refillMs);
  const before = availableMiB();
  const undo = [];
  try {
    for (let index = 0; index < idle; index++) undo.push(await make());
    await settle(2 * refillMs);
    return (before - availableMiB()) / idle;
  } finally {
    for (const end of undo) await end();
  }
}

/** crun refuses hosts with both versions of cgroups; it runs in a mount namespace that hides one. */
const hidden = existsSync('/sys/fs/cgroup/unified')
  ? ['unshare', '--mount', 'sh', '-c', 'mount -t tmpfs none /sys/fs/cgroup/unified && exec "$@"', 'sh']
  : [];
const folder = mkdtempSync(join(tmpdir(), 'atoll-figures-'));
mkdirSync(join(folder, 'rootfs/bin'), { recursive: true });
cpSync(Bun.which('busybox') ?? '/bin/busybox', join(folder, 'rootfs/bin/busybox'));
await mustRun(['crun', 'spec'], { timeoutMs: requestTimeoutMs, cwd: folder });
const specification = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8')) as {
  process: { terminal: boolean; args: string[] };
};
const container = async (name: string, args: string[], detached: boolean) => {
  writeFileSync(
    join(folder, 'config.json'),
    JSON.stringify({ ...specification, process: { ...specification.process, terminal: false, args } }),
  );
  // A process that runs on keeps its output open, and the reader waits for its end.
  const quiet = detached ? ['sh', '-c', 'exec "$@" > /dev/null 2>&1', 'sh'] : [];
  const run = ['run', ...(detached ? ['--detach'] : []), '--bundle', folder, name];
  await mustRun([...quiet, ...hidden, 'crun', '--cgroup-manager=cgroupfs', ...run], { timeoutMs: requestTimeoutMs });
};
const removed = (name: string) =>
  mustRun([...hidden, 'crun', 'delete', '--force', name], { timeoutMs: requestTimeoutMs });

const sandbox = await Sandbox.create({ requestTimeoutMs });
const exec = await times(() => sandbox.commands.run('true', { timeoutMs: requestTimeoutMs }));
await sandbox.kill();
const created: Sandbox[] = [];
const create = await times(async () => created.push(await Sandbox.create({ requestTimeoutMs })), refillMs);
await Promise.all(created.map(made => made.kill()));
const memory = await memoryOf(async () => {
  const made = await Sandbox.create({ requestTimeoutMs });
  return () => made.kill();
});
const run = await times(() => container('lab-figure', ['/bin/busybox', 'true'], false));
let count = 0;
const containerMemory = await memoryOf(async () => {
  const name = `lab-idle-${count++}`;
  await container(name, ['/bin/busybox', 'sleep', '600'], true);
  return () => removed(name);
});
rmSync(folder, { recursive: true });

const report = (feature: string, detail: string) =>
  process.stdout.write(`${JSON.stringify({ feature, verdict: 'works', detail } satisfies Finding)}\n`);
const ratio = (ms: number) => `${ms.toFixed(1)} ms, ${(ms / run).toFixed(2)} × crun run (${run.toFixed(1)} ms)`;
report('create (median, from the pool)', ratio(create));
report('command (median)', ratio(exec));
report(idleFeature, `${memory.toFixed(1)} MiB; idle container of crun: ${containerMemory.toFixed(1)} MiB`);
process.exit(0);
