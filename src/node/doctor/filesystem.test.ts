import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tryCommand } from '../../base/process/command.ts';
import { filesystemProbes, inScratch } from './filesystem.ts';
import { findingOf } from './probe.ts';

let dir = '';
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), 'atoll-filesystem-'))));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const run = (program: string, ...args: string[]) => tryCommand([program, ...args]);

/** Mounts a file system with these options of mount(8) at `dir` while `work` runs. */
async function mounted(options: string[], work: () => Promise<void>): Promise<void> {
  await run('mount', ...options, dir);
  try {
    await work();
  } finally {
    await run('umount', dir);
  }
}

async function finding(name: string, at = dir, reserveMiB = 2048) {
  const probe = filesystemProbes(at, reserveMiB).find(probe => probe.name === name);
  if (!probe) throw new Error(`no probe is called ${name}`);
  return findingOf(probe);
}

const attached = () => run('losetup', '--list', '--noheadings', '--output', 'BACK-FILE');

test('the needs of sandboxes’ root file systems are tried, and nothing is left of that', async () => {
  for (const name of ['idmapped mounts', 'overlay over idmapped layers', 'EROFS', 'disk limit'])
    expect(await finding(name)).toMatchObject({ name, needed: true, status: 'ok' });
  expect(readdirSync(dir)).toEqual([]);
  expect(await attached()).not.toContain(dir);
});

test('it says how overlays and images are mounted', async () => {
  const details = ['overlay over idmapped layers', 'EROFS', 'idmapped mounts'].map(async name => finding(name));
  const [overlay, erofs, idmapped] = await Promise.all(details);
  expect(overlay?.detail).toMatch(/^layers given (as descriptors|by path)/);
  expect(erofs?.detail).toMatch(/^images mounted (from files|by loop devices)/);
  expect(idmapped?.detail).toBe('on the data directory’s file system');
});

test('a file system without reflinks is limited by that', () =>
  mounted(['-t', 'tmpfs', 'none'], async () => {
    expect(await finding('reflinks')).toEqual({
      name: 'reflinks',
      needed: false,
      status: 'limited',
      detail: 'disks of sandboxes are copied, sparsely',
      remedy: 'Put the data directory on xfs or btrfs.',
    });
    expect(readdirSync(dir)).toEqual([]);
  }));

test('room is missing, scarce or enough', async () => {
  for (const [gib, expected] of [
    [2, { status: 'missing', detail: `2.0 GiB free for ${dir}`, remedy: expect.stringContaining('at least 3072 MiB') }],
    [3, { status: 'limited', remedy: expect.stringContaining('10 GiB or more') }],
    [9, { status: 'limited' }],
    [10, { status: 'ok', detail: `10.0 GiB free for ${dir}` }],
  ] as const)
    await mounted(['-t', 'tmpfs', '-o', `size=${gib}g`, 'none'], async () =>
      expect(await finding('disk space')).toMatchObject(expected as object),
    );
});

test('room that is kept back is no room', () =>
  mounted(['-t', 'tmpfs', '-o', 'size=9g', 'none'], async () => {
    const remedy = expect.stringContaining('Free at least 9728 MiB (8704 of them are the reserve');
    expect(await finding('disk space', dir, 8704)).toMatchObject({ status: 'missing', remedy });
    expect(await finding('disk space', dir, 64)).toMatchObject({ status: 'limited' });
  }));

test('room is looked at where the directory will be', () =>
  mounted(['-t', 'tmpfs', '-o', 'size=2g', 'none'], async () => {
    const later = join(dir, 'not', 'there', 'yet');
    expect(await finding('disk space', later)).toMatchObject({ status: 'missing' });
    expect(existsSync(join(dir, 'not'))).toBe(false);
  }));

test('quotas are those of the mount that holds the directory', async () => {
  const none = 'none on the data directory’s file system; each sandbox has an ext4 image';
  const image = `${dir}.img`;
  try {
    await run('truncate', '--size', '16M', image);
    await run('mkfs.ext4', '-q', '-F', image);
    await mounted(['-o', 'loop,usrquota', image], async () => {
      const beside = `${dir}-beside`;
      expect(await finding('quota')).toMatchObject({
        status: 'ok',
        detail: 'usrquota; each sandbox has an ext4 image all the same',
      });
      expect(await finding('quota', join(dir, 'below'))).toMatchObject({ detail: expect.stringContaining('usrquota') });
      // Its path begins with that of the mount point, but it is not inside.
      mkdirSync(beside);
      try {
        expect(await finding('quota', beside)).toMatchObject({ status: 'ok', detail: none });
      } finally {
        rmSync(beside, { recursive: true });
      }
      mkdirSync(join(dir, 'above'));
      await run('mount', '-t', 'tmpfs', 'none', join(dir, 'above'));
      try {
        expect(await finding('quota', join(dir, 'above'))).toMatchObject({ detail: none });
      } finally {
        await run('umount', join(dir, 'above'));
      }
    });
  } finally {
    rmSync(image, { force: true });
  }
});

test('a place that can’t be used is reported as such, with what to do', async () => {
  writeFileSync(join(dir, 'file'), '');
  for (const at of [join(dir, 'file'), join(dir, 'file', 'below')]) {
    const found = await finding('reflinks', at);
    const detail = `${join(dir, 'file')} is a file: no directory can be there`;
    expect(found).toMatchObject({ status: 'missing', detail });
    expect(found.remedy).toStartWith('Set ATOLL_DATA_DIR');
  }
  await mounted(['-t', 'tmpfs', '-o', 'ro', 'none'], async () => {
    const found = await finding('EROFS');
    expect(found).toMatchObject({
      status: 'missing',
      detail: expect.stringContaining(`nothing can be written to ${dir}`) as string,
    });
    expect(found.remedy).toStartWith('Set ATOLL_DATA_DIR');
  });
});

test('a full disk is reported as such, if nothing can begin and if a program ran out of room', async () => {
  await mounted(['-t', 'tmpfs', '-o', 'size=1m', 'none'], async () => {
    const failed = inScratch(dir, () => Promise.reject(new Error('its own words')));
    const message = `the disk of ${dir} is full: this could not be tried`;
    await expect(failed).rejects.toMatchObject({ code: 'no_space', message });
    expect(readdirSync(dir)).toEqual([]);
  });
  await mounted(['-t', 'tmpfs', '-o', 'nr_inodes=1', 'none'], async () => {
    const found = await finding('reflinks');
    expect(found).toMatchObject({ status: 'missing', detail: expect.stringContaining('nothing can be written') });
    expect(found.remedy).toStartWith('Make room on that disk');
  });
});

test('what is looked at in a scratch folder is answered, fails as it does, and the folder goes', async () => {
  let seen = '';
  const look = async (scratch: string) => {
    await Promise.resolve();
    seen = scratch;
    writeFileSync(join(scratch, 'file'), '');
    return 'what it saw';
  };
  expect(await inScratch(dir, look)).toBe('what it saw');
  expect(seen).toStartWith(join(dir, '.atoll-doctor-'));
  await expect(inScratch(dir, () => Promise.reject(new Error('its own words')))).rejects.toThrow('its own words');
  expect(readdirSync(dir)).toEqual([]);
});
