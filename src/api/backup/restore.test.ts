import { afterAll, expect, test } from 'bun:test';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkManifest, writeManifest } from './manifest.ts';
import { copyPlainFiles } from './plain-files.ts';
import { sandboxDirectory, sandboxFiles, volumeImage } from './places.ts';
import { restoreSandboxes } from './sandboxes.ts';
import { pack, unpackInto } from './tar.ts';
import { packVolumes, restoreVolumes } from './volumes.ts';

// Backups with correct sums, made by an attacker.

const folder = mkdtempSync(join(tmpdir(), 'atoll-tampered-'));
afterAll(() => rmSync(folder, { recursive: true }));
function directory(...path: string[]): string {
  const made = join(folder, ...path);
  mkdirSync(made, { recursive: true });
  return made;
}

test('the name of a sandbox can’t lead anywhere else', async () => {
  const content = directory('names');
  await writeManifest(content, ['i0123456789abcdefghij']);
  await checkManifest(content);
  rmSync(content, { recursive: true });
  await writeManifest(directory('names'), ['../../../etc']);
  await expect(checkManifest(content)).rejects.toThrow('is no sandbox');
});

test('a paused sandbox comes back without memory, and without processes of its former installation', async () => {
  const sandboxId = 'i0123456789abcdefghij';
  const record = { sandboxId, state: 'paused', kept: 'memory', frozen: { pid: 1, startTicks: '2' } };
  writeFileSync(join(directory('paused'), sandboxFiles.record), JSON.stringify(record));
  await pack(join(folder, 'paused'), join(directory('backup/sandboxes'), `${sandboxId}.tar`));
  expect(await restoreSandboxes(join(folder, 'backup'), directory('restored'), [sandboxId])).toEqual([sandboxId]);
  const restored = readFileSync(
    join(sandboxDirectory(join(folder, 'restored'), sandboxId), sandboxFiles.record),
    'utf8',
  );
  expect(JSON.parse(restored)).toEqual({ sandboxId, state: 'paused', kept: 'filesystem', frozen: null });
});

test('a sandbox whose volume was deleted while the backup was written does not come back without it', async () => {
  const [kept, deleted] = [crypto.randomUUID(), crypto.randomUUID()];
  const [whole, ended] = ['i00000000000000000000', 'i11111111111111111111'];
  for (const [sandboxId, volumeIds] of [
    [whole, [kept]],
    [ended, [kept, deleted]],
  ] as const) {
    const volumes = volumeIds.map(volumeId => ({ volumeId, path: `/${volumeId}` }));
    writeFileSync(join(directory('mounted', sandboxId), sandboxFiles.record), JSON.stringify({ sandboxId, volumes }));
    await pack(join(folder, 'mounted', sandboxId), join(directory('with-volumes/sandboxes'), `${sandboxId}.tar`));
  }
  const restored = directory('volumes-restored');
  directory('volumes-restored/node/volumes', kept);
  expect(await restoreSandboxes(join(folder, 'with-volumes'), restored, [ended, whole])).toEqual([whole]);
  expect(readdirSync(join(restored, 'node/sandboxes'))).toEqual([whole]);
});

test('the name of a volume can’t lead anywhere else', async () => {
  writeFileSync(join(directory('unpacked/volumes'), '...tar'), '');
  await expect(restoreVolumes(join(folder, 'unpacked'), directory('data'))).rejects.toThrow('is no volume');
});

test('a volume that is being made is not in a backup, as it could not be restored', async () => {
  const volumeId = crypto.randomUUID();
  for (const name of ['making-QV6NtQ', volumeId])
    writeFileSync(join(directory('in-use/node/volumes', name), volumeImage), 'content');
  expect(await packVolumes(join(folder, 'in-use'), directory('staging'))).toEqual([]);
  expect(readdirSync(join(folder, 'staging/volumes'))).toEqual([`${volumeId}.tar`]);
});

test('an archive that is being uploaded is not in a backup, and complete ones are', () => {
  const [hash, other] = ['a'.repeat(64), 'b'.repeat(64)];
  const from = directory('running/files/team');
  writeFileSync(join(folder, 'running/seed'), 'seed');
  writeFileSync(join(from, hash), 'whole', { mode: 0o600 });
  writeFileSync(join(from, `${other}.${crypto.randomUUID()}`), 'ha');
  symlinkSync('nowhere', join(from, 'c'.repeat(64))); // like a file that vanishes between listing and copying
  const staging = directory('plain');
  copyPlainFiles(join(folder, 'running'), staging);
  expect(readdirSync(staging).toSorted()).toEqual(['files', 'seed']);
  expect(readdirSync(join(staging, 'files/team'))).toEqual([hash]);
  expect(statSync(join(staging, 'files/team')).mode & 0o777).toBe(0o700);
  expect(statSync(join(staging, 'files/team', hash)).mode & 0o777).toBe(0o600);
});

test('a link is not restored', async () => {
  symlinkSync('/etc/hostname', join(directory('links'), 'disk.img'));
  await pack(join(folder, 'links'), join(folder, 'links.tar'));
  await expect(unpackInto(directory('out'), join(folder, 'links.tar'))).rejects.toThrow(
    'neither a file nor a directory',
  );
});
