import { Sandbox, SandboxNotFoundError } from 'e2b';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Feature, lookAt, Refused, same } from './feature.ts';

/** IDs of the sandboxes that go through a crash of the platform, its `down` or a reboot of the host. */
export type Kept = { running: string; paused: string };

//   bun survivors.ts begin                makes them, and prints their IDs
//   bun survivors.ts WHAT RUNNING PAUSED  looks at them after what has come over the platform: `kill -9`, `reboot` …
const timeoutMs = 3_600_000;
const commandMs = 120_000;
/** A process that counts five times a second shows within this time, even on an emulated machine. */
const goesOnMs = 30_000;

const [what = 'begin', running = '', paused = ''] = process.argv.slice(2);

const read = async (sandbox: Sandbox, path: string) =>
  (await sandbox.commands.run(`cat ${path}`, { timeoutMs: commandMs })).stdout.trim();
const connect = (id: string) => Sandbox.connect(id, { timeoutMs, requestTimeoutMs: commandMs });

async function make(): Promise<Sandbox> {
  const sandbox = await Sandbox.create({ timeoutMs, requestTimeoutMs: commandMs });
  await sandbox.files.write('note', 'kept');
  await sandbox.commands.run('i=0; while :; do i=$((i+1)); echo $i > /dev/shm/count; sleep 0.2; done', {
    background: true,
    timeoutMs: 0,
  });
  await countsOn(sandbox);
  return sandbox;
}

async function countsOn(sandbox: Sandbox): Promise<boolean> {
  const count = async () => Number(await read(sandbox, '/dev/shm/count').catch(() => '0'));
  const first = await count();
  for (const deadline = Date.now() + goesOnMs; Date.now() < deadline;) {
    await sleep(200);
    if ((await count()) > first) return true;
  }
  return false;
}

const runsOn: Feature = {
  name: `${what}: running sandboxes are taken over`,
  async look() {
    const sandbox = await connect(running);
    same(await read(sandbox, '/home/user/note'), 'kept', 'its file');
    if (!(await countsOn(sandbox))) throw new Error('its process does not run on');
  },
};

/** Why a running sandbox has ended, by the event it went through. */
const reasons: Record<string, string> = { down: 'request', 'atoll uninstall': 'request' };

const isGone: Feature = {
  name: `${what}: what ran is gone, and is said to be`,
  async look() {
    const listed = await Sandbox.list().nextItems();
    if (listed.some(({ sandboxId }) => sandboxId === running)) throw new Error('it is still listed');
    const error: unknown = await connect(running).catch((error: unknown) => error);
    if (!(error instanceof SandboxNotFoundError)) throw new Error(`connecting to it: ${String(error)}`);
    const reason = await killReasonOf(running);
    same(reason, reasons[what], 'the reason in its last event');
    return `its last event says: ${reason}`;
  },
};

/** The host has taken its processes, but not its files. */
const keptFiles: Feature = {
  name: `${what}: what ran is paused with its files`,
  async look() {
    const { state } = await Sandbox.getInfo(running);
    same(state, 'paused', 'its state');
    const sandbox = await connect(running);
    same(await read(sandbox, '/home/user/note'), 'kept', 'its file');
    if (await countsOn(sandbox)) throw new Error('its process runs');
    return 'and boots when it is resumed';
  },
};

const comesBack: Feature = {
  name: `${what}: paused sandboxes resume`,
  async look() {
    const sandbox = await connect(paused);
    same(await read(sandbox, '/home/user/note'), 'kept', 'its file');
    const withMemory = await countsOn(sandbox);
    await sandbox.pause({ requestTimeoutMs: commandMs });
    if (!withMemory) throw new Refused('with their files; they boot');
    return 'with their memory';
  },
};

async function killReasonOf(sandboxId: string): Promise<string | undefined> {
  const answer = await fetch(`${process.env['E2B_API_URL']}/events/sandboxes/${sandboxId}`, {
    headers: { 'X-API-Key': process.env['E2B_API_KEY'] ?? '' },
    signal: AbortSignal.timeout(commandMs),
  });
  const events = (await answer.json()) as { type: string; event_data?: { kill_reason?: string } | null }[];
  return events.find(({ type }) => type === 'sandbox.lifecycle.killed')?.event_data?.kill_reason;
}

if (what === 'begin') {
  const [one, other] = [await make(), await make()];
  await other.pause({ requestTimeoutMs: commandMs });
  process.stdout.write(`${JSON.stringify({ running: one.sandboxId, paused: other.sandboxId } satisfies Kept)}\n`);
} else await lookAt([what === 'reboot' ? keptFiles : what in reasons ? isGone : runsOn, comesBack], []);
process.exit(0);
