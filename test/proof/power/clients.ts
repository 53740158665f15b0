import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'bun:test';
import { Sandbox, Template, Volume } from 'e2b';
import { repository } from '../../support/platform.ts';
import { runToEnd } from '../../support/process.ts';
import { messageOf } from '../../../src/base/error.ts';
import type { Ledger, Looker } from './ledger.ts';

/** A client at work: it sends requests, waits for the answers, and records what it was told. */
type Client = (looker: Looker, ledger: Ledger, round: number) => Promise<void>;

const hourMs = 3_600_000;
const home = '/home/user/note';
const text = () => randomBytes(8).toString('hex');
/** So long that its pages are not written out together with neighbouring ones. */
const longText = () => randomBytes(200_000).toString('hex');

async function answered(
  looker: Looker,
  status: number,
  method: string,
  path: string,
  body?: unknown,
): Promise<unknown> {
  const response = await looker.platform.api(method, path, body);
  const answer = await response.text();
  if (response.status !== status)
    throw new Error(`${method} ${path}: ${response.status} instead of ${status}: ${answer}`);
  return answer === '' ? undefined : JSON.parse(answer);
}

async function asOperator({ platform }: Looker, method: string, path: string, body?: unknown): Promise<unknown> {
  const token = readFileSync(join(platform.ready.dataDir, 'admin-token'), 'utf8').trim();
  const response = await fetch(new URL(path, platform.ready.url), {
    method,
    headers: { 'X-Admin-Token': token, 'Content-Type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const answer = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status}: ${answer}`);
  return answer === '' ? undefined : JSON.parse(answer);
}

/** Pauses with memory and without, resumes, kills. */
const pausing: Client = async (looker, ledger) => {
  const sandbox = await Sandbox.create('base', { ...looker.connection, timeoutMs: hourMs });
  const path = `/sandboxes/${sandbox.sandboxId}`;
  for (const memory of [true, false]) {
    const note = longText();
    await sandbox.files.write(home, note);
    await sandbox.files.write('/dev/shm/note', note);
    await answered(looker, 204, 'POST', `${path}/pause`, { memory });
    const resumed = ledger.told(
      `${path} is paused ${memory ? 'with' : 'without'} memory`,
      async there => expect(await answered(there, 200, 'GET', path)).toMatchObject({ state: 'paused' }),
      async there => {
        const response = await there.platform.api('POST', `${path}/connect`, { timeout: 3600 });
        expect([response.status, response.headers.get('x-resumed-from')]).toEqual([
          201,
          memory ? 'memory' : 'filesystem',
        ]);
        const again = await Sandbox.connect(sandbox.sandboxId, there.connection);
        expect((await again.files.read(home)) === note).toBe(true);
        if (memory) expect((await again.files.read('/dev/shm/note')) === note).toBe(true);
      },
    );
    resumed();
    await answered(looker, 201, 'POST', `${path}/connect`, { timeout: 3600 });
    // A sandbox that ran when the power failed has its files. But it must not return in an earlier state.
    const changed = ledger.told(
      `${path} runs`,
      async there => void (await answered(there, 200, 'GET', path)),
      async there => {
        const response = await there.platform.api('POST', `${path}/connect`, { timeout: 3600 });
        if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
        expect(response.headers.get('x-resumed-from')).not.toBe('memory');
      },
    );
    await sandbox.files.write(home, longText());
    await sandbox.commands.run('sync');
    changed();
  }
  await answered(looker, 204, 'POST', `${path}/pause`, { memory: true });
  await answered(looker, 204, 'DELETE', path);
  ledger.told(`${path} is killed`, async there => void (await answered(there, 404, 'GET', path)));
};

/** Saves what a sandbox has, and deletes it. */
const keeping: Client = async (looker, ledger, round) => {
  const note = text();
  const sandbox = await Sandbox.create('base', { ...looker.connection, timeoutMs: hourMs });
  await sandbox.files.write(home, note);
  const { snapshotId } = await sandbox.createSnapshot();
  const isKept = async (there: Looker) => {
    const again = await Sandbox.create(snapshotId, { ...there.connection, timeoutMs: hourMs });
    expect(await again.files.read(home)).toBe(note);
    await again.kill();
  };
  const ids = async (there: Looker) =>
    ((await answered(there, 200, 'GET', '/snapshots')) as { snapshotID: string }[]).map(({ snapshotID }) => snapshotID);
  const deleted = ledger.told(
    `snapshot ${snapshotId} is kept`,
    async there => expect(await ids(there)).toContain(snapshotId),
    isKept,
  );
  await sandbox.kill();
  if (round % 2 === 1) return;
  deleted();
  await Sandbox.deleteSnapshot(snapshotId, looker.connection);
  ledger.told(`snapshot ${snapshotId} is deleted`, async there => expect(await ids(there)).not.toContain(snapshotId));
};

/** Builds templates. */
const building: Client = async (looker, ledger, round) => {
  const [name, note] = [`power-${round}`, text()];
  const definition = Template()
    .fromTemplate('base')
    .runCmd(`echo ${note} > ${home}; head -c 3000000 /dev/urandom > /tmp/x`);
  await Template.build(definition, name, { ...looker.connection, cpuCount: 1, memoryMB: 512 });
  ledger.told(
    `template ${name} is built`,
    async there => expect(await Template.exists(name, there.connection)).toBe(true),
    async there => {
      const sandbox = await Sandbox.create(name, { ...there.connection, timeoutMs: hourMs });
      expect((await sandbox.files.read(home)).trim()).toBe(note);
      await sandbox.kill();
    },
  );
};

/** Writes to a volume, through the API and from a sandbox that mounts it. */
const storing: Client = async (looker, ledger, round) => {
  const volume = await Volume.create(`power-${round}`, looker.connection);
  const has = (path: string, content: string) => async (there: Looker) => {
    const again = await Volume.connect(volume.volumeId, there.connection);
    expect((await again.readFile(path)) === content).toBe(true);
  };
  const byApi = longText();
  await volume.writeFile('/by-api', byApi);
  ledger.told(`${volume.name} has what the API was given`, has('/by-api', byApi));
  const sandbox = await Sandbox.create('base', {
    ...looker.connection,
    timeoutMs: hourMs,
    volumeMounts: { '/data': volume },
  });
  for (const file of ['one', 'two']) {
    const synced = longText();
    await sandbox.files.write('/tmp/new', synced);
    await sandbox.commands.run(`cp /tmp/new /data/${file} && sync /data/${file} /data`);
    ledger.told(`${volume.name} has ${file}, which a sandbox has synced`, has(`/${file}`, synced));
  }
  await sandbox.kill();
};

/** Changes what a team has besides sandboxes. */
const managing: Client = async (looker, ledger, round) => {
  const [{ teamID } = { teamID: '' }] = (await asOperator(looker, 'GET', '/admin/teams')) as { teamID: string }[];
  const keys = `/admin/teams/${teamID}/api-keys`;
  const { id, key } = (await asOperator(looker, 'POST', keys, { name: `power-${round}` })) as {
    id: string;
    key: string;
  };
  const statusOf = async (there: Looker) =>
    (await fetch(new URL('/v2/sandboxes', there.platform.ready.url), { headers: { 'X-API-Key': key } })).status;
  const revoked = ledger.told(`key ${id} is made`, async there => expect(await statusOf(there)).toBe(200));
  if (round % 2 === 0) {
    revoked();
    await asOperator(looker, 'DELETE', `${keys}/${id}`);
    ledger.told(`key ${id} is revoked`, async there => expect(await statusOf(there)).toBe(401));
  }
  const name = `power-${round}`;
  await answered(looker, 201, 'POST', '/secrets', { name, value: text() });
  ledger.told(`secret ${name} is kept`, async there =>
    expect(JSON.stringify(await answered(there, 200, 'GET', '/secrets'))).toContain(`"${name}"`),
  );
};

/** Backs the installation up, to the same disk. */
const backingUp: Client = async ({ platform }, ledger, round) => {
  const folder = join(platform.ready.dataDir, '../backups');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${round}`);
  const digest = () => createHash('sha256').update(readFileSync(file)).digest('hex');
  const { exitCode, stderr } = await runToEnd([join(repository, 'bin/atoll'), 'backup', file], { env: platform.env });
  if (exitCode !== 0) throw new Error(`atoll backup: ${stderr}`);
  const expected = digest();
  ledger.told(`backup ${round} is written`, async () => expect(digest()).toBe(expected));
};

const clients: Client[] = [pausing, pausing, keeping, building, storing, managing, backingUp];

/** All clients work for some rounds, all at once. */
export async function work(looker: Looker, ledger: Ledger, rounds: number): Promise<void> {
  await Promise.all(
    clients.map(async client => {
      for (let round = 0; round < rounds; round++) await client(looker, ledger, round);
    }),
  );
}

/** All clients work once, all at once, and give up at the first failure: answers what they were then told. */
export async function workOnce(looker: Looker, ledger: Ledger, round: number): Promise<string[]> {
  const outcomes = await Promise.allSettled(clients.map(client => client(looker, ledger, round)));
  return outcomes.flatMap(outcome => (outcome.status === 'rejected' ? [messageOf(outcome.reason)] : []));
}
