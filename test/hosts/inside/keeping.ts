import { Sandbox, SandboxError, Volume } from 'e2b';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Feature, Refused, same } from './feature.ts';
import { withSandbox } from './sandbox.ts';

const timeoutMs = 600_000;
const commandMs = 120_000;
/** Longer than a paused sandbox stands frozen: its memory has then gone to the disk. */
const frozenMs = 30_000;

const counter = 'i=0; while :; do i=$((i+1)); echo $i > /tmp/count; sleep 0.2; done';
const count = async (sandbox: Sandbox) =>
  Number((await sandbox.commands.run('cat /tmp/count', { timeoutMs: commandMs })).stdout);

async function counting(): Promise<Sandbox> {
  const sandbox = await Sandbox.create({ timeoutMs, requestTimeoutMs: commandMs });
  await sandbox.commands.run(counter, { background: true, timeoutMs: 0 });
  await sleep(2_000);
  return sandbox;
}

/** The error that a host without memory keeping answers, as documented. */
function refusal(error: unknown): never {
  if (error instanceof SandboxError && /memory/i.test(error.message)) throw new Refused(error.message);
  throw error;
}

/** What outlives a moment: pauses, forks, snapshots, volumes. */
export const keepingFeatures: Feature[] = [
  {
    name: 'pause and resume with memory',
    async look() {
      const sandbox = await counting();
      const bootId = async (of: Sandbox) =>
        (await of.commands.run('cat /proc/sys/kernel/random/boot_id', { timeoutMs: commandMs })).stdout;
      const before = await bootId(sandbox);
      await sandbox.pause({ requestTimeoutMs: commandMs });
      await sleep(frozenMs);
      const back = await Sandbox.connect(sandbox.sandboxId, { timeoutMs, requestTimeoutMs: commandMs });
      const first = await count(back);
      await sleep(3_000);
      const [after, then] = [await bootId(back), await count(back)];
      await back.kill();
      if (after !== before) throw new Refused('the sandbox came back with its files, and booted');
      if (then <= first) throw new Error(`the process that counted stands still at ${then}`);
    },
  },
  {
    name: 'fork',
    async look() {
      const source = await counting();
      try {
        const [fork] = await source.fork({ count: 1, timeoutMs, requestTimeoutMs: commandMs }).catch(refusal);
        if (!fork || fork instanceof Error) refusal(fork);
        const first = await count(fork);
        await sleep(3_000);
        const then = await count(fork);
        await fork.kill();
        if (then <= first) throw new Error(`the fork's process stands still at ${then}`);
      } finally {
        await source.kill();
      }
    },
  },
  {
    name: 'snapshot',
    async look() {
      const source = await counting();
      await source.files.write('note', 'kept');
      const { snapshotId } = await source.createSnapshot({ requestTimeoutMs: commandMs }).catch(refusal);
      await source.kill();
      const made = await Sandbox.create(snapshotId, { timeoutMs, requestTimeoutMs: commandMs });
      same(await made.files.read('note'), 'kept', 'its file');
      const first = await count(made).catch(() => 0);
      await sleep(3_000);
      const then = await count(made).catch(() => 0);
      await made.kill();
      await Sandbox.deleteSnapshot(snapshotId);
      return then > first ? 'with its processes' : 'with its files';
    },
  },
  {
    name: 'volumes',
    async look() {
      process.env['E2B_VOLUME_API_URL'] ??= process.env['E2B_API_URL'] ?? '';
      const volume = await Volume.create(`lab-${process.pid}`);
      const mounted = { timeoutMs, requestTimeoutMs: commandMs, volumeMounts: { '/data': volume } };
      const [one, other] = [await Sandbox.create(mounted), await Sandbox.create(mounted)];
      try {
        await one.commands.run('echo from one > /data/note', { timeoutMs: commandMs, user: 'root' });
        same(
          (await other.commands.run('cat /data/note; stat -c %u /data/note', { timeoutMs: commandMs })).stdout,
          'from one\n0\n',
          'in the other sandbox',
        );
        same(await volume.readFile('/note'), 'from one\n', 'by the API');
      } finally {
        await Promise.all([one.kill(), other.kill()]);
      }
      await Volume.destroy(volume.volumeId);
    },
  },
  {
    name: 'many at once',
    async look() {
      const sandboxes = await Promise.all(
        Array.from({ length: 6 }, () => Sandbox.create({ timeoutMs, requestTimeoutMs: 240_000 })),
      );
      const ids = await Promise.all(
        sandboxes.map(sandbox => sandbox.commands.run('echo $E2B_SANDBOX_ID', { timeoutMs: commandMs })),
      );
      same(
        ids.map(({ stdout }) => stdout.trim()),
        sandboxes.map(({ sandboxId }) => sandboxId),
        'their IDs',
      );
      await Promise.all(sandboxes.map(sandbox => sandbox.kill()));
      return withSandbox(async () => `${sandboxes.length}, then another`);
    },
  },
];
