import { afterAll, beforeEach, expect, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createBuilder } from '../../src/node/builder/builder.ts';
import { cachedFilesOf } from '../../src/node/builds/cache/cached-files.ts';
import { uploadedFilesIn } from '../../src/node/builds/cache/uploaded-files.ts';

// The api owns the directory of uploaded files. If compromised, it puts links there for root to follow.

const dist = join(import.meta.dir, '../../dist');
const top = mkdtempSync(join(tmpdir(), 'atoll-planted-'));
const [files, outside, spare] = [join(top, 'files'), join(top, 'outside'), join(top, 'spare')];
const hash = 'a'.repeat(64);
const layout = { data: join(top, 'node') };
const builder = createBuilder({
  helper: { mountsPid: process.pid },
  helperBinary: join(dist, 'helper'),
  builderDir: join(dist, 'builder'),
  installation: 14,
});

beforeEach(() => {
  for (const path of [files, outside, spare]) rmSync(path, { recursive: true, force: true });
  for (const path of [join(files, 'team'), outside]) mkdirSync(path, { recursive: true });
  writeFileSync(join(outside, hash), 'of the host');
  writeFileSync(join(outside, 'other'), 'of the host');
});
afterAll(async () => {
  await builder.stop();
  rmSync(top, { recursive: true });
});

const inTeam = join(files, 'team', hash);
const swapTeam = () => {
  renameSync(join(files, 'team'), spare);
  symlinkSync(outside, join(files, 'team'));
};
const reads = (input: string) =>
  builder.run({ job: { kind: 'import', limits: { bytesMax: 1000, inodesMax: 10 } }, input });

test('a link in the place of an uploaded file is no uploaded file, and is not opened', async () => {
  symlinkSync(join(outside, hash), inTeam);
  expect(uploadedFilesIn(files).path('team', hash)).toBeUndefined();
  await expect(reads(inTeam)).rejects.toMatchObject({ code: 'ELOOP' });
});

test('nor is what lies where the directory of a team leads, also when it leads there after it was found', async () => {
  writeFileSync(inTeam, 'uploaded');
  const found = uploadedFilesIn(files).path('team', hash);
  expect(found).toBe(inTeam);
  swapTeam();
  await expect(reads(inTeam)).rejects.toThrow('not a file of its directory');
});

test('a pipe keeps nobody waiting', async () => {
  Bun.spawnSync(['mkfifo', inTeam]);
  expect(uploadedFilesIn(files).path('team', hash)).toBeUndefined();
  await expect(reads(inTeam)).rejects.toThrow('not a file of its directory');
});

test('nothing is removed where the directory of a team leads', () => {
  symlinkSync(outside, join(files, 'planted'));
  writeFileSync(inTeam, 'uploaded');
  const found = cachedFilesOf(layout, files);
  expect(found.length).toBe(1);
  swapTeam();
  expect(() => found[0]?.remove()).toThrow();
  expect(readdirSync(outside).sort()).toEqual([hash, 'other'].sort());
  rmSync(join(files, 'team'));
  renameSync(spare, join(files, 'team'));
  found[0]?.remove();
  expect(existsSync(inTeam)).toBe(false);
});
