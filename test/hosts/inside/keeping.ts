import { Sandbox, SandboxError, Volume } from 'e2b';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Feature, Refused, same } from './feature.ts';
import { withSandbox } from './sandbox.ts';

const timeoutMs = 600_000;
const commandMs = 120_000;
/** Longer than a paused sandbox stays frozen: then its memory has gone to the disk. */
const frozenMs = 30_000;

const counter = 'i=0; while :; do i=$((i+1)); echo $i > /tmp/count; sleep 0.2; done';
const count = async (sandbox: Sandbox) =>
  Number((await sandbox.commands.run('cat /tmp/count', { timeoutMs: commandMs })).stdout);

/** Whether its process continues counting from `first`. */
async function countsOn(sandbox: Sandbox, first: number): Promise<boolean> {
  for (const deadline = Date.now() + commandMs; Date.now() < deadline;) {
    await sleep(200);
    if ((await count(sandbox).catch(() => 0)) > first) return true;
  }
  return false;
}

async function counting(): Promise<Sandbox> {
  const sandbox = await Sandbox.create({ timeoutMs, requestTimeoutMs: commandMs });
  await sandbox.commands.run(counter, { background: true, timeoutMs: 0 });
  await countsOn(sandbox, 0);
  return sandbox;
}

/** The documented error of a host that can't keep memory. */
function refusal(error: unknown): never {
  if (error instanceof SandboxError && /memory/i.test(error.message)) throw new Refused(error.message);
  throw error;
}

/** What lasts longer than a moment: pauses, forks, snapshots, volumes. */
export const keepingFeatures: Feature[] = [
  {
    name: 'pause and resume with memory',
    async look() {
      const sandbox = await counting();
      const bootId = async (of: Sandbox) =>
        (await of.commands.run('cat /proc/sys/kernel/random/boot_id', { timeoutMs: commandMs })).stdout;
      const before = await bootId(sandbox);
      await sandbox.pause({ requestTimeoutMs: commandMs });
      // A window in which its memory goes to the disk.
      await sleep(frozenMs);
      const back = await Sandbox.connect(sandbox.sandboxId, { timeoutMs, requestTimeoutMs: commandMs });
      const after = await bootId(back);
      const first = after === before ? await count(back) : 0;
      const goesOn = after === before && (await countsOn(back, first));
      await back.kill();
      if (after !== before) throw new Refused('the sandbox came back with its files, and booted');
      if (!goesOn) throw new Error(`the process that counted stands still at ${first}`);
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
        const goesOn = await countsOn(fork, first);
        await fork.kill();
        if (!goesOn) throw new Error(`the fork's process stands still at ${first}`);
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
      // Without memory, no process counts.
      const first = await count(made).catch(() => 0);
      const goesOn = first > 0 && (await countsOn(made, first));
      await made.kill();
      await Sandbox.deleteSnapshot(snapshotId);
      return goesOn ? 'with its processes' : 'with its files';
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
