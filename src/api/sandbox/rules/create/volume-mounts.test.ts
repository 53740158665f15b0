import { afterAll, expect, test } from 'bun:test';
import { openStore } from '../../../database/database.ts';
import type { TeamRecord } from '../../../team/record.ts';
import { createTeam } from '../../../team/rules/provision-team.ts';
import { insertVolume } from '../../../volume/store/volumes.ts';
import { noFeatures } from '../../features.ts';
import { homeOfVolumes, inheritedMounts, resolveVolumeMounts } from './volume-mounts.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const features = { ...noFeatures, volumes: true };
const [mine, theirs] = [await teamOf('mine'), await teamOf('theirs')];
const here = Array.from({ length: 17 }, (_, index) => `v${index}`);
for (const name of here) await volume(mine, name, 'a');
await volume(mine, 'far', 'b');
await volume(theirs, 'foreign', 'a');

function teamOf(slug: string): Promise<TeamRecord> {
  return createTeam({ db, clock: () => 1 }, { name: slug, slug });
}

async function volume({ teamId }: TeamRecord, name: string, nodeId: string): Promise<void> {
  const asked = { volumeId: `id-${name}`, teamId, nodeId, name, sizeMiB: 1, createdAtUs: 1 };
  expect(await insertVolume(db, asked, 100)).toBe('inserted');
}

type Mounts = Parameters<typeof resolveVolumeMounts>[2];
type Inherited = Parameters<typeof homeOfVolumes>[3];
const resolve = (asked: Mounts, inherited: Inherited = [], deps = { db, features }) =>
  resolveVolumeMounts(deps, mine, asked, { nodeId: 'a', inherited });
const at = (path: string) => [{ name: 'v0', path }];
const many = (count: number) => here.slice(0, count).map(name => ({ name, path: `/data/${name}` }));

test('a sandbox gets the volumes of its request, and those of its snapshot by their IDs', async () => {
  const inherited = [{ volumeId: 'id-v1', name: 'renamed since', path: '/old' }];
  expect(await resolve(at('/data'), inherited)).toEqual([
    { volumeId: 'id-v0', name: 'v0', path: '/data' },
    { volumeId: 'id-v1', name: 'v1', path: '/old' },
  ]);
  expect(await resolve(many(16))).toHaveLength(16);
});

test('without volumes nothing is looked up, even where there are none', async () => {
  expect(await resolve([], [], { db: undefined as never, features: noFeatures })).toEqual([]);
  expect(await homeOfVolumes({ db: undefined as never }, mine, [], [])).toBeUndefined();
});

test('a snapshot’s volume stays unless the request has another one at its path', () => {
  const taken = ['/a', '/b'].map(path => ({ volumeId: path, name: path, path }));
  expect(inheritedMounts(taken, [{ name: 'other', path: '/a' }])).toEqual(taken.slice(1));
});

test.each(['/d', '/data/x.y/..z', '/procs', '/.agents', `/${'x'.repeat(499)}`])('a volume can be at %s', async path => {
  expect(await resolve(at(path))).toMatchObject([{ path }]);
});

const wrongPaths: [string, string][] = [
  [`/${'x'.repeat(500)}`, '501 bytes, the most is 500'],
  ['/a:b', 'must hold no "]", ":"'],
  ['/a"b', 'must hold no'],
  ['/a\nb', 'must hold no'],
  ['', 'must be absolute and clean'],
  ['data', 'must be absolute and clean'],
  ['/data/', 'must be absolute and clean'],
  ['/a//b', 'must be absolute and clean'],
  ['/a/./b', 'must be absolute and clean'],
  ['/a/../b', 'must be absolute and clean'],
  ['/', '"/" is a place of the system'],
  ['/proc', '"/proc" is a place of the system'],
  ['/dev/shm', '"/dev/shm" is a place of the system'],
  ['/.agent', '"/.agent" is a place of the system'],
];

test.each(wrongPaths)('no volume can be at %j', async (path, why) => {
  await expect(resolve(at(path))).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining(`volumeMounts[0].path: ${why}`),
  });
});

const unknown = (count: number) => many(count).map(({ path }) => ({ name: 'none', path }));
const refused: [string, Mounts, string][] = [
  ['one without name', [{ name: '', path: '/d' }], '[0].name: must not be empty'],
  ['one that is not there', [{ name: 'none', path: '/d' }], '[0].name: the team has no volume "none"'],
  ['one of another team', [{ name: 'foreign', path: '/d' }], '[0].name: the team has no volume "foreign"'],
  [
    'one of another machine',
    [{ name: 'far', path: '/d' }],
    ': the volumes are on different machines ("far" on another one than the first): a sandbox gets those of one ' +
      'machine',
  ],
  ['two at one path', [...at('/d'), ...at('/d')], '[1].path: "/d" is given twice'],
  ['too many, whatever they are', unknown(17), ': 17 volumes, the most is 16'],
];

test.each(refused)('%s is refused', async (_, asked, why) => {
  await expect(resolve(asked)).rejects.toMatchObject({ code: 'invalid', message: `volumeMounts${why}` });
});

test('a snapshot’s volumes count like all others', async () => {
  const inherited = here.slice(15).map(name => ({ volumeId: `id-${name}`, name, path: `/old/${name}` }));
  expect(await resolve(many(14), inherited)).toHaveLength(16);
  await expect(resolve(many(15), inherited)).rejects.toThrow('volumeMounts: 17 volumes, the most is 16');
});

test('all errors are reported at once, including those of the snapshot’s volumes', async () => {
  const inherited = [{ volumeId: 'gone', name: 'old', path: '/old' }];
  await expect(resolve([{ name: 'none', path: 'data' }], inherited)).rejects.toThrow(
    /^volumeMounts\[0\]\.path: must be .*; volumeMounts\[0\]\.name: the team .*; .* with volume "old" at "\/old"/,
  );
});

test('volumes are refused where the installation has none', async () => {
  const why = 'volumeMounts: volumes are not available in this installation';
  await expect(resolve(at('/data'), [], { db, features: noFeatures })).rejects.toThrow(why);
});

test('the machine of a sandbox is that of its volumes', async () => {
  const home = (asked: Mounts, inherited: Inherited = []) => homeOfVolumes({ db }, mine, asked, inherited);
  expect(await home([{ name: 'far', path: '/d' }])).toBe('b');
  expect(await home([], [{ volumeId: 'id-far', name: 'renamed', path: '/d' }])).toBe('b');
  expect(await home([], [{ volumeId: 'gone', name: 'far', path: '/d' }])).toBeUndefined();
  expect(await home([{ name: 'foreign', path: '/d' }])).toBeUndefined();
});
