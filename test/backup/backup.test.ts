import { expect, test } from 'bun:test';
import { Sandbox } from 'e2b';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readSync,
  readdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repository, startPlatform } from '../support/platform.ts';
import type { TestPlatform } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';

const atoll = (env: NodeJS.ProcessEnv, ...args: string[]) =>
  runToEnd([join(repository, 'bin/atoll'), ...args], { env });
/** Flips a bit of the byte in the middle. */
function flipBit(file: string): void {
  const fd = openSync(file, 'r+');
  const byte = Buffer.alloc(1);
  const at = Math.floor(statSync(file).size / 2);
  readSync(fd, byte, 0, 1, at);
  writeSync(fd, Buffer.from([(byte[0] ?? 0) ^ 1]), 0, 1, at);
  closeSync(fd);
}

type VolumeAnswer = { volumeID: string; token: string };
const content = ({ ready }: TestPlatform, { volumeID, token }: VolumeAnswer, init: RequestInit = {}) =>
  fetch(`${ready.url}/volumecontent/${volumeID}/file?path=/kept`, {
    ...init,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/octet-stream' },
  });
const clientOf = ({ ready }: TestPlatform) => ({
  apiKey: ready.apiKey,
  apiUrl: ready.url,
  sandboxUrl: ready.url,
  domain: ready.domain,
});

test('a backup of a platform in use becomes the same installation elsewhere; what is damaged, or in the way, is refused', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-backup-'));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'atoll.backup');
  const target = join(folder, 'restored');
  const targetEnv = { ...process.env, ATOLL_DATA_DIR: target };
  let kept = '';
  let secondKey = '';
  let snapshotId = '';
  {
    await using platform = await startPlatform();
    const client = clientOf(platform);
    const sandbox = await Sandbox.create(client);
    await sandbox.files.write('/home/user/note', 'still here');
    snapshotId = (await sandbox.createSnapshot()).snapshotId;
    kept = sandbox.sandboxId;
    await sandbox.pause();
    secondKey = (await atoll(platform.env, 'key', 'create', '--name', 'second')).stdout.trim();
    const volume = (await (await platform.api('POST', '/volumes', { name: 'data' })).json()) as VolumeAnswer;
    expect((await content(platform, volume, { method: 'PUT', body: 'in the volume' })).status).toBe(201);
    await platform.api('POST', '/secrets', { name: 'token', value: 'v' });

    // A killed backup leaves nothing that hinders the next one.
    const killed = Bun.spawn([join(repository, 'bin/atoll'), 'backup', file], {
      env: platform.env,
      stdout: 'ignore',
      stderr: 'ignore',
    });
    const scratches = () => readdirSync(platform.ready.dataDir).filter(name => name.startsWith('backup-'));
    while (scratches().length === 0 && killed.exitCode === null) await Bun.sleep(5);
    killed.kill('SIGKILL');
    await killed.exited;
    expect(scratches()).toHaveLength(1);
    expect(existsSync(file)).toBe(false);

    // Sandboxes come and go while the backup is written.
    let busy = true;
    const churn = (async () => {
      for (let count = 0; ; count++) {
        if (!busy) return count;
        const made = await Sandbox.create(client);
        await made.kill();
      }
    })();
    const written = await atoll(platform.env, 'backup', file, '--sandboxes');
    busy = false;
    expect(await churn).toBeGreaterThan(0);
    expect(written).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('1 paused sandbox.'), stderr: '' });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(scratches()).toEqual([]);

    expect(await atoll(platform.env, 'backup', join(folder, 'not-mounted/file'))).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(`There is no directory ${join(folder, 'not-mounted')}: make it`),
    });
    expect(await atoll(platform.env, 'backup', file)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('is there already'),
    });
    // Over a running platform, and over one that has stopped.
    expect(await atoll(platform.env, 'restore', file)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('is not empty'),
    });
  }

  const damaged = join(folder, 'damaged');
  const refused = async (name: string, damage: string) => {
    const { exitCode, stderr } = await atoll(targetEnv, 'restore', join(folder, name));
    expect({ damage, exitCode, made: readdirSync(folder).some(name => name.startsWith('restor')) }).toEqual({
      damage,
      exitCode: 1,
      made: false,
    });
    expect(stderr).toMatch(/^atoll restore: The backup is damaged.*\n$/);
  };
  await Bun.write(damaged, await Bun.file(file).slice(0, 20_000_000).bytes());
  await refused('damaged', 'cut short');
  await Bun.write(damaged, 'hello');
  await refused('damaged', 'no backup at all');
  rmSync(damaged);
  flipBit(file);
  await refused('atoll.backup', 'one bit is another');
  flipBit(file);

  mkdirSync(target);
  expect(await atoll(targetEnv, 'restore', file)).toMatchObject({ exitCode: 0, stderr: '' });
  expect(readdirSync(folder).toSorted()).toEqual(['atoll.backup', 'restored']);

  await using restored = await startPlatform({ ATOLL_DATA_DIR: target });
  const client = clientOf(restored);
  expect((await fetch(`${restored.ready.url}/templates`, { headers: { 'X-API-Key': secondKey } })).status).toBe(200);
  expect((await Sandbox.list({ ...client }).nextItems()).map(({ sandboxId, state }) => ({ sandboxId, state }))).toEqual(
    [{ sandboxId: kept, state: 'paused' }],
  );
  const again = await Sandbox.connect(kept, { ...client, apiKey: secondKey });
  expect(await again.files.read('/home/user/note')).toBe('still here');
  expect((await again.commands.run('echo works')).stdout).toBe('works\n');
  await again.kill();
  const ofSnapshot = await Sandbox.create(snapshotId, client);
  expect(await ofSnapshot.files.read('/home/user/note')).toBe('still here');
  await ofSnapshot.kill();
  const fresh = await Sandbox.create(client);
  await fresh.kill();
  expect(await (await restored.api('GET', '/secrets')).json()).toMatchObject([{ name: 'token' }]);
  const [volume] = (await (await restored.api('GET', '/volumes')).json()) as VolumeAnswer[];
  const opened = (await (await restored.api('GET', `/volumes/${volume?.volumeID}`)).json()) as VolumeAnswer;
  expect(await (await content(restored, opened)).text()).toBe('in the volume');
  expect(existsSync(join(target, 'api/atoll.sqlite'))).toBe(true);
}, 180_000);
