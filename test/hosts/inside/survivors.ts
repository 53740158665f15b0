import { Sandbox } from 'e2b';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Feature, lookAt, Refused, same } from './feature.ts';

// Sandboxes that a crash of the platform or a reboot of the host meets:
//   bun survivors.ts begin                        makes them, and prints their IDs
//   bun survivors.ts crash|reboot RUNNING PAUSED  looks at them afterwards
const timeoutMs = 3_600_000;
const commandMs = 120_000;

const [what = 'begin', running = '', paused = ''] = process.argv.slice(2);

const read = async (sandbox: Sandbox, path: string) => (await sandbox.commands.run(`cat ${path}`, { timeoutMs: commandMs })).stdout.trim();
const connect = (id: string) => Sandbox.connect(id, { timeoutMs, requestTimeoutMs: commandMs });

async function make(): Promise<Sandbox> {
  const sandbox = await Sandbox.create({ timeoutMs, requestTimeoutMs: commandMs });
  await sandbox.files.write('note', 'kept');
  await sandbox.commands.run('i=0; while :; do i=$((i+1)); echo $i > /dev/shm/count; sleep 0.2; done', { background: true, timeoutMs: 0 });
  await sleep(2_000);
  return sandbox;
}

async function countsOn(sandbox: Sandbox): Promise<boolean> {
  const first = Number(await read(sandbox, '/dev/shm/count').catch(() => '0'));
  await sleep(3_000);
  return Number(await read(sandbox, '/dev/shm/count').catch(() => '0')) > first;
}

const runsOn: Feature = {
  name: 'kill -9: running sandboxes are taken over',
  async look() {
    const sandbox = await connect(running);
    same(await read(sandbox, '/home/user/note'), 'kept', 'its file');
    if (!(await countsOn(sandbox))) throw new Error('its process does not run on');
  },
};

const isGone: Feature = {
  name: 'reboot: what ran is gone, and is said to be',
  async look() {
    const listed = await Sandbox.list({ query: { state: ['running'] } }).nextItems();
    if (listed.some(({ sandboxId }) => sandboxId === running)) throw new Error('a sandbox that ran before the reboot is still listed');
  },
};

const comesBack: Feature = {
  name: `${what === 'crash' ? 'kill -9' : 'reboot'}: paused sandboxes resume`,
  async look() {
    const sandbox = await connect(paused);
    same(await read(sandbox, '/home/user/note'), 'kept', 'its file');
    const withMemory = await countsOn(sandbox);
    if (what === 'crash') await sandbox.pause({ requestTimeoutMs: commandMs });
    if (!withMemory) throw new Refused('with their files; they boot');
    return 'with their memory';
  },
};

if (what === 'begin') {
  const [one, other] = [await make(), await make()];
  await other.pause({ requestTimeoutMs: commandMs });
  process.stdout.write(`${JSON.stringify({ running: one.sandboxId, paused: other.sandboxId })}\n`);
} else await lookAt(what === 'crash' ? [runsOn, comesBack] : [isGone, comesBack], []);
process.exit(0);
