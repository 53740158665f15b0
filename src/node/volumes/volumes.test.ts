import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLog } from '../../base/telemetry/log.ts';
import { slotOf } from '../layout.ts';
import type { Helper } from '../native/helper.ts';
import { createVolumes } from './volumes.ts';

const [first, second] = ['00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002'];
const elsewhere = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
const slot = slotOf(0, 1);
/** Longer than an unused volume stays mounted. */
const afterAWhileMs = 5_000;

let folder = '';
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'atoll-volumes-'))));
afterEach(() => {
  jest.useRealTimers();
  rmSync(folder, { recursive: true });
});

/**
 * The volumes of a node whose helper mounts nothing: `happened` records the calls, in order. Those named in `fails`
 * fail once.
 */
function node(fails: string[] = []) {
  const [happened, logged, failing]: [string[], string[], string[]] = [[], [], [...fails]];
  const fail = (name: string) => {
    const at = failing.indexOf(name);
    if (at >= 0) throw new Error(`${failing.splice(at, 1)} failed`);
  };
  const helper = {
    mountsPid: process.pid,
    async call(name: string, { at }: { at: string }) {
      await Promise.resolve();
      const what = `${name === 'disk-mount' ? 'mount' : name} ${at.slice(-1)}`;
      happened.push(what);
      fail(what);
      if (name === 'disk-mount') mkdirSync(join(at, 'data'), { recursive: true });
    },
    async spawn(argv: string[]) {
      const [program = ''] = argv;
      const to = argv.at(-1) ?? '';
      if (program === 'mkfs.ext4') {
        happened.push(`format ${to}`);
        const isFull = failing.includes('format');
        writeFileSync(argv.at(-2) ?? '', 'an image');
        if (!isFull) truncateSync(argv.at(-2) ?? '', Number.parseInt(to, 10) * 2 ** 20);
        return isFull ? { status: 1, output: 'it is full' } : { status: 0, output: '' };
      }
      if (program === 'sync') happened.push(`sync ${to.at(-6)}`);
      return program === 'sync' && failing.includes('sync') ? { status: 1, output: '' } : { status: 0, output: '' };
    },
  } as unknown as Helper;
  const log = createLog('debug', line => logged.push(JSON.parse(line).message));
  const [dir, mounts] = [join(folder, 'volumes'), join(folder, 'mounts')];
  const volumes = createVolumes({ helper, dir, mounts, log });
  return { volumes, did: () => happened.splice(0), logged, dir, mounts, fail: (name: string) => failing.push(name) };
}

/** A node with two volumes. */
async function nodeWithTwo() {
  const made = node();
  for (const volumeId of [first, second]) await made.volumes.create(volumeId, 8);
  made.did();
  return made;
}

async function passTime() {
  jest.advanceTimersByTime(afterAWhileMs);
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

test('a volume is made whole and once, however often it is asked for at a time', async () => {
  const { volumes, did, dir } = node();
  await Promise.all([volumes.create(first, 8), volumes.create(first, 8)]);
  expect(did()).toEqual(['format 8M']);
  expect(readdirSync(dir)).toEqual([first]);
  expect(readdirSync(join(dir, first)).sort()).toEqual(['changed', 'disk.img']);
  expect(volumes.list()).toMatchObject([{ volumeId: first, sizeMiB: 8 }]);
  expect(volumes.folderOf(first)).toBe(join(dir, first));
  expect(await volumes.taken([first, elsewhere, 'x'])).toEqual({ [first]: expect.any(Number) as number });
});

test('a volume that can’t be made leaves nothing, and leftovers of a crash are removed', async () => {
  const { volumes, dir } = node(['format']);
  await expect(volumes.create(first, 8)).rejects.toThrow('it is full');
  expect(readdirSync(dir)).toEqual([]);
  mkdirSync(join(dir, 'making-x/tree'), { recursive: true });
  mkdirSync(join(dir, 'other'));
  expect(node().volumes.list()).toEqual([]);
  expect(readdirSync(dir)).toEqual(['other']);
  // The content of all tenants is below it.
  expect(statSync(dir).mode & 0o777).toBe(0o700);
});

test('a name that is not a volume’s is not found, whatever it leads to', async () => {
  const { volumes, dir, did } = await nodeWithTwo();
  for (const name of [elsewhere, '', '..', '../volumes', `${first}/`, `../volumes/${first}`, `x${first}`]) {
    const missing = expect.objectContaining({ code: 'not_found', message: `volume ${name} is not on this node` });
    await expect(volumes.use(name)).rejects.toEqual(missing);
    await expect(volumes.change([name], async () => {})).rejects.toEqual(missing);
    await expect(volumes.seal(name)).rejects.toEqual(missing);
    if (name !== elsewhere) {
      await expect(volumes.remove(name)).rejects.toEqual(missing);
      expect(() => volumes.folderOf(name)).toThrow(missing as Error);
    }
  }
  expect([did(), readdirSync(dir)]).toEqual([[], [first, second]]);
});

test('a volume is mounted once for all who use it, and unmounted when nobody has for a while', async () => {
  jest.useFakeTimers();
  const { volumes, did, mounts } = await nodeWithTwo();
  const [one, two] = await Promise.all([volumes.use(first), volumes.use(first)]);
  expect([did(), one?.root]).toEqual([['mount 1'], join(mounts, `volume-${first}/data`)]);
  one.release();
  one.release();
  await passTime();
  expect(did()).toEqual([]);
  two.release();
  // A use that comes in time finds it still mounted.
  const three = await volumes.use(first);
  await passTime();
  expect(did()).toEqual([]);
  three.release();
  await passTime();
  expect([did(), existsSync(join(mounts, `volume-${first}`))]).toEqual([['unmount 1'], false]);
  (await volumes.use(first)).release();
  expect(did()).toEqual(['mount 1']);
});

test('after a mount that failed the next one is tried anew', async () => {
  const { volumes, did, fail } = await nodeWithTwo();
  fail('mount 1');
  const asked = await Promise.allSettled([volumes.use(first), volumes.use(first)]);
  expect(asked.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const use = await volumes.use(first);
  use.release();
  expect(did()).toEqual(['mount 1', 'mount 1']);
});

test('a volume that can’t be unmounted is said to be so, and can be used', async () => {
  jest.useFakeTimers();
  const { volumes, logged, fail, did } = await nodeWithTwo();
  (await volumes.use(first)).release();
  fail('unmount 1');
  await passTime();
  expect([did(), logged]).toEqual([['mount 1', 'unmount 1'], ['a volume could not be unmounted']]);
  (await volumes.use(first)).release();
});

test('the end of a node leaves everything mounted', async () => {
  jest.useFakeTimers();
  const { volumes, did } = await nodeWithTwo();
  (await volumes.use(first)).release();
  volumes.stop();
  await passTime();
  expect(did()).toEqual(['mount 1']);
});

test('a volume that goes to another machine is used by nobody until it is unsealed', async () => {
  const { volumes, did } = await nodeWithTwo();
  const use = await volumes.use(first);
  const inUse = expect.objectContaining({ code: 'conflict', message: `volume ${first} is in use` });
  await expect(volumes.seal(first)).rejects.toEqual(inUse);
  use.release();
  await volumes.seal(first);
  expect(did()).toEqual(['mount 1', 'unmount 1']);
  await expect(volumes.seal(first)).rejects.toEqual(inUse);
  await expect(volumes.use(first)).rejects.toMatchObject({ code: 'unavailable', retryAfterSeconds: 2 });
  await expect(volumes.change([second, first], async () => {})).rejects.toMatchObject({ code: 'unavailable' });
  volumes.unseal(first);
  (await volumes.use(first)).release();
  // An unused volume is sealed as well.
  await volumes.seal(second);
});

test('work that changes several volumes has all of them mounted, and gives all back', async () => {
  const { volumes, did } = await nodeWithTwo();
  expect(await volumes.change([second, first, second], async () => did())).toEqual(['mount 2', 'mount 1']);
  await expect(volumes.change([first, elsewhere], async () => {})).rejects.toMatchObject({ code: 'not_found' });
  await expect(volumes.change([first], () => Promise.reject(new Error('it fails')))).rejects.toThrow('it fails');
  for (const volumeId of [first, second]) await volumes.seal(volumeId);
  expect(await volumes.change([], async () => 'nothing to hold')).toBe('nothing to hold');
});

test('a removal unmounts a volume, even if it is in use, before its image is removed', async () => {
  jest.useFakeTimers();
  const { volumes, did, dir } = await nodeWithTwo();
  const use = await volumes.use(first);
  (await volumes.use(second)).release();
  did();
  await volumes.remove(first);
  await volumes.remove(second);
  expect([did(), readdirSync(dir)]).toEqual([['unmount 1', 'unmount 2'], []]);
  await expect(volumes.use(first)).rejects.toMatchObject({ code: 'not_found' });
  // A new volume of the same name has none of the old one's users.
  await volumes.create(first, 8);
  const again = await volumes.use(first);
  did();
  use.release();
  await passTime();
  expect(did()).toEqual([]);
  again.release();
  await passTime();
  expect(did()).toEqual(['unmount 1']);
});

test('the image of a volume that can’t be unmounted stays, and nobody gets one that is about to go', async () => {
  const { volumes, fail, dir } = await nodeWithTwo();
  (await volumes.use(first)).release();
  fail('unmount 1');
  await expect(volumes.remove(first)).rejects.toThrow('unmount 1 failed');
  expect(readdirSync(dir)).toEqual([first, second]);
  const [removed, late] = [volumes.remove(first), volumes.use(first)];
  await expect(late).rejects.toMatchObject({ code: 'not_found' });
  await removed;
});

test('a sandbox holds its volumes until its slot is released', async () => {
  jest.useFakeTimers();
  const { volumes, did, mounts } = await nodeWithTwo();
  const rootOf = (volumeId: string) => join(mounts, `volume-${volumeId}/data`);
  expect(await volumes.hold(slot, [second, first])).toEqual([rootOf(second), rootOf(first)]);
  await volumes.sync(slot);
  await passTime();
  expect(did()).toEqual(['mount 2', 'mount 1', 'sync 2', 'sync 1']);
  expect(volumes.states().map(({ isInSandbox }) => isInSandbox)).toEqual([true, true]);
  volumes.release(slot);
  volumes.release(slot);
  expect(volumes.states().map(({ isInSandbox }) => isInSandbox)).toEqual([false, false]);
  await volumes.sync(slot);
  await passTime();
  expect(did().sort()).toEqual(['unmount 1', 'unmount 2']);
});

test('volumes held by a hold that failed are released with the slot, and a failed sync is reported', async () => {
  const { volumes, fail } = await nodeWithTwo();
  await expect(volumes.hold(slot, [first, elsewhere])).rejects.toMatchObject({ code: 'not_found' });
  fail('sync');
  await expect(volumes.sync(slot)).rejects.toMatchObject({
    code: 'no_space',
    message: "a volume can't be written out: status 1",
  });
  volumes.release(slot);
  await volumes.seal(first);
});

test('a volume has changed when a call last wrote to it, and while a sandbox has it with its image', async () => {
  const { volumes, dir } = await nodeWithTwo();
  const stateOf = (volumeId: string) => volumes.states().find(state => state.volumeId === volumeId);
  const set = (name: string, seconds: number) => utimesSync(join(dir, first, name), seconds, seconds);
  set('changed', 100);
  set('disk.img', 200);
  expect(stateOf(first)).toEqual({ volumeId: first, isInSandbox: false, changedAtMs: 100_000 });
  await volumes.hold(slot, [first]);
  set('changed', 100);
  set('disk.img', 200);
  expect(stateOf(first)).toEqual({ volumeId: first, isInSandbox: true, changedAtMs: 200_000 });
  set('disk.img', 50);
  expect(stateOf(first)?.changedAtMs).toBe(100_000);
  volumes.release(slot);
  // The last user may have written to it to the end.
  expect(stateOf(first)?.changedAtMs).toBeGreaterThan(200_000);
  set('changed', 100);
  volumes.touch(first);
  expect(stateOf(first)?.changedAtMs).toBeGreaterThan(200_000);
  // A volume from before there were marks gets one, and one that is gone does not come back by a mark.
  rmSync(join(dir, first, 'changed'));
  expect(stateOf(first)?.changedAtMs).toBe(0);
  volumes.touch(first);
  expect(stateOf(first)?.changedAtMs).toBeGreaterThan(200_000);
  volumes.touch(elsewhere);
  expect(readdirSync(dir)).toEqual([first, second]);
});

test('a volume that arrives takes the place of what was here of it, when that is unmounted', async () => {
  const { volumes, did, dir } = await nodeWithTwo();
  (await volumes.use(first)).release();
  did();
  const arrived = join(folder, 'arrived');
  mkdirSync(arrived);
  writeFileSync(join(arrived, 'disk.img'), '');
  truncateSync(join(arrived, 'disk.img'), 3 * 2 ** 20);
  await volumes.arrive(first, arrived);
  expect([did(), existsSync(arrived), readdirSync(join(dir, first))]).toEqual([['unmount 1'], false, ['disk.img']]);
  expect(volumes.list()).toMatchObject([{ volumeId: first, sizeMiB: 3 }, { sizeMiB: 8 }]);
  // A folder whose image has not arrived is listed without a size.
  rmSync(join(dir, second, 'disk.img'));
  expect(volumes.list().map(volume => 'sizeMiB' in volume)).toEqual([true, false]);
});
