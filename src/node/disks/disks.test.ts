import { afterEach, beforeEach, expect, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeFull } from '../../protocol/no-room.ts';
import { HelperError } from '../native/helper-process.ts';
import type { Helper } from '../native/helper.ts';
import { copyImage } from './copy-image.ts';
import { createDisks } from './disks.ts';

test('leftovers of mounts and of formatting are removed after a crash, and no disk is', () => {
  const dir = mkdtempSync(join(tmpdir(), 'atoll-disks-'));
  try {
    mkdirSync(join(dir, 'making-x1'));
    const lasting = ['empty-512-ab.img', 's0.img', 's12.img'];
    for (const name of ['snapshot-ab12.img', 'self-test.img', 'making-x1/image', ...lasting])
      writeFileSync(join(dir, name), '');
    createDisks({ helper: {} as Helper, dir, files: {} });
    expect(readdirSync(dir).sort()).toEqual(lasting);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

let dir: string;
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'atoll-disks-'))));
afterEach(() => rmSync(dir, { recursive: true }));

/** A helper that runs programs itself and records its other calls; `fails` says which of those fail. */
function helperOf(fails: (what: string) => Error | undefined = () => undefined) {
  const asked: string[] = [];
  const programs: string[] = [];
  const helper = {
    async call(what: string, { image, at, from, to }: Record<string, string>) {
      const present = image === undefined ? '' : ` ${existsSync(image) ? 'there' : 'gone'}`;
      asked.push(
        `${what} ${[image, from, to, at]
          .filter(Boolean)
          .map(path => path?.replace(`${dir}/`, ''))
          .join(' ')}${present}`,
      );
      const failure = fails(what);
      if (failure) throw failure;
      return { used: image?.endsWith('used.img') };
    },
    async spawn(argv: string[]) {
      programs.push(argv[0] ?? '');
      const child = Bun.spawn(argv, { stdout: 'pipe', stderr: 'pipe' });
      const output = (await new Response(child.stdout).text()) + (await new Response(child.stderr).text());
      return { status: await child.exited, output };
    },
  } as unknown as Helper;
  return { helper, asked, programs };
}
const at = (name: string) => join(dir, name);

test('a new disk is a copy of an empty one of its size, which is made once and has the files', async () => {
  const { helper, asked, programs } = helperOf();
  const disks = createDisks({ helper, dir, files: { 'etc/resolv.conf': 'nameserver 203.0.113.53' } });
  await Promise.all([disks.create(at('s1.img'), 16, '/mnt/s1'), disks.create(at('s2.img'), 16, '/mnt/s2')]);
  await createDisks({ helper, dir, files: { 'etc/resolv.conf': 'nameserver 203.0.113.53' } }).create(
    at('s3.img'),
    16,
    '/m/s3',
  );
  const [empty = '', ...others] = readdirSync(dir);
  expect([others, programs, statSync(at(empty)).size]).toEqual([[], ['mkfs.ext4'], 16 << 20]);
  expect(readFileSync(at(empty)).includes('nameserver 203.0.113.53')).toBe(true);
  expect(asked.filter(what => what.startsWith('disk-create'))).toEqual(
    [1, 2, 3].map(number => `disk-create ${empty} s${number}.img`),
  );
  // They already have the names of their mount points.
  expect(asked).toContain('disk-mount s1.img /mnt/s1 gone');
  await createDisks({ helper, dir, files: {} }).create(at('s1.img'), 16, '/mnt/s1');
  await disks.create(at('s1.img'), 17, '/mnt/s1');
  expect([programs.length, readdirSync(dir).length]).toEqual([3, 3]);
});

test('an empty disk that can’t be made leaves nothing', async () => {
  const { helper } = helperOf();
  const disks = createDisks({ helper, dir, files: {} });
  await expect(disks.create(at('s1.img'), 0, '/mnt/s1')).rejects.toMatchObject({
    message: expect.stringContaining('mkfs.ext4 failed'),
  });
  expect(readdirSync(dir)).toEqual([]);
});

test('an existing disk is mounted by a name that reveals nothing, which is then removed', async () => {
  const { helper, asked } = helperOf();
  const disks = createDisks({ helper, dir, files: {} });
  writeFileSync(at('secret'), 'disk');
  writeFileSync(at('s4.img'), 'left behind');
  await disks.open(at('secret'), '/mnt/s4');
  expect([asked, readdirSync(dir)]).toEqual([['disk-mount s4.img /mnt/s4 there'], ['secret']]);
  await disks.close('/mnt/s4');
  expect(asked.slice(1)).toEqual(['unmount /mnt/s4']);
  expect([await disks.used(at('used.img')), await disks.used(at('secret'))]).toEqual([true, false]);
  writeFileSync(at('s5.img'), 'own');
  disks.give(at('s5.img'), at('given'));
  expect([readdirSync(dir).sort(), readFileSync(at('given'), 'utf8')]).toEqual([['given', 'secret'], 'own']);
});

test('a machine without another device is full, and other trouble is what it is', async () => {
  for (const [failure, code, detail] of [
    [new HelperError(28, 'disk-mount: loop device: no space'), 'unavailable', nodeFull],
    [new HelperError(28, 'disk-mount: /dev/loop-control: no space'), 'unavailable', nodeFull],
    [new HelperError(5, 'disk-mount: broken'), 'internal', undefined],
    [new HelperError(12, 'disk-mount: mount ext4: Cannot allocate memory'), 'unavailable', nodeFull],
    [new Error('disk-mount: loop device: from somebody else'), undefined, undefined],
  ] as const) {
    const disks = createDisks({ helper: helperOf(() => failure).helper, dir, files: {} });
    writeFileSync(at('secret'), 'disk');
    const error = await disks.open(at('secret'), '/mnt/s4').catch((thrown: unknown) => thrown);
    expect([(error as { code?: string }).code, (error as { detail?: string }).detail]).toEqual([code, detail]);
    expect(readdirSync(dir)).toEqual(['secret']);
  }
});

test('the helper copies a small image itself', async () => {
  const { helper, asked, programs } = helperOf();
  writeFileSync(at('from'), 'content');
  await copyImage(helper, { from: at('from'), to: at('to'), what: 'the disk' });
  expect([asked, programs]).toEqual([['disk-create from to'], []]);
});

test('an image that the helper can’t copy is copied, or the error names it', async () => {
  const { helper } = helperOf(() => new Error('failed'));
  writeFileSync(at('from'), 'content');
  await copyImage(helper, { from: at('from'), to: at('to'), what: 'the disk' });
  expect(readFileSync(at('to'), 'utf8')).toBe('content');
  await expect(copyImage(helper, { from: at('gone'), to: at('to'), what: 'the disk' })).rejects.toMatchObject({
    message: expect.stringContaining("the disk can't be copied: cp: "),
  });
});
