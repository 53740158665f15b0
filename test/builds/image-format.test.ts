import { expect, test } from 'bun:test';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeTar } from '../../src/base/write-tar.ts';
import { createImageWriter } from '../../src/builder/erofs/writer.ts';
import { createHash } from 'node:crypto';
import { messageOf, AtollError } from '../../src/base/error.ts';
import { runLayerJob } from '../../src/builder/layer/layer-program.ts';
import type { LayerJob } from '../../src/protocol/builder.ts';
import { newDirectory, type DirectoryNode } from '../../src/builder/erofs/tree.ts';
import { scratch } from './support/scratch.ts';
import { text } from './support/trees.ts';

const limits = { bytesMax: 1 << 30, inodesMax: 100_000 };

async function* iterate(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

type Made = { ok: { digest: string } | null } | { error: { code: string; message: string } };

/** Imports an archive as a builder does, into the file `image`. */
async function runImport(
  { image, limits: own }: { image: string; limits: LayerJob['limits'] },
  archive: AsyncIterable<Uint8Array>,
): Promise<Made> {
  const fd = openSync(image, 'wx+');
  try {
    await runLayerJob({ kind: 'import', limits: own }, { output: fd, input: () => archive });
    return { ok: { digest: createHash('sha256').update(readFileSync(image)).digest('hex') } };
  } catch (error) {
    return { error: { code: error instanceof AtollError ? error.code : 'internal', message: messageOf(error) } };
  } finally {
    closeSync(fd);
  }
}

/** Packs what a shell script makes, imports it as a layer, and answers the kernel's view of both. */
async function throughImage(script: string): Promise<{ before: string; after: string }> {
  using dir = scratch();
  const tree = join(dir.path, 'tree');
  const image = join(dir.path, 'image');
  const packed = Bun.spawnSync([
    'sh',
    '-ec',
    `mkdir ${tree} ${dir.path}/mount; cd ${tree}; ${script}; tar --format=posix --xattrs --xattrs-include='*' --numeric-owner --sort=name -C ${tree} -cf ${dir.path}/tar .`,
  ]);
  if (packed.exitCode !== 0) throw new Error(packed.stderr.toString());
  const answer = await runImport({ image, limits }, iterate(readFileSync(join(dir.path, 'tar'))));
  if (!('ok' in answer)) throw new Error(answer.error.message);
  const check = Bun.spawnSync(['fsck.erofs', image]);
  expect(check.exitCode).toBe(0);
  // The root of the archive is the root of the image: even its own time is the same.
  const list = `find . -printf '%p %y %m %U %G %n %s %T@ %l\\n' | sed -E 's/^(.* d .*) [0-9]+ ([0-9.]+ ?)$/\\1 \\2/' | LC_ALL=C sort; find . -type f | LC_ALL=C sort | tr '\\n' '\\0' | xargs -0 sha256sum; getfattr -R -d -m - . 2>/dev/null`;
  const before = Bun.spawnSync(['sh', '-c', list], { cwd: tree });
  const after = Bun.spawnSync([
    'unshare',
    '--mount',
    'sh',
    '-ec',
    `mount -t erofs -o ro ${image} ${dir.path}/mount; cd ${dir.path}/mount; ${list}`,
  ]);
  return { before: before.stdout.toString(), after: after.stdout.toString() + after.stderr.toString() };
}

test('files of every size around a block, in order and with their content', async () => {
  const sizes = [
    0, 1, 2047, 2048, 2049, 4031, 4032, 4033, 4095, 4096, 4097, 6143, 6144, 6145, 8192, 1048576, 1048577, 3000001,
  ];
  const { before, after } = await throughImage(sizes.map(size => `head -c ${size} /dev/urandom > f${size}`).join('; '));
  expect(before).toContain('f3000001');
  expect(after).toBe(before);
});

test('directories from empty to several blocks, with names of any bytes and length', async () => {
  const script = `mkdir empty many; i=0; while [ $i -lt 900 ]; do : > many/file-with-a-name-$i; i=$((i+1)); done; mkdir -p a/b/c/d/e; : > "$(printf 'caf\\351')"; : > "$(printf 'x%.0s' $(seq 255))"; : > '!first'; : > '-dash'; : > '~last'`;
  const { before, after } = await throughImage(script);
  expect(before.split('\n').length).toBeGreaterThan(1800);
  expect(after).toBe(before);
});

test('links, owners, modes, times and pipes', async () => {
  const script = `echo x > f; ln f hard; mkdir d; ln f d/hard2; ln -s f soft; ln -s ${'y/'.repeat(300)} long; chown 12:34 f; chmod 6755 f; chmod 1777 d; touch -d '1999-12-31 23:59:59.123456789' f; mkfifo p; chown 65535:65534 p`;
  const { before, after } = await throughImage(script);
  expect(before).toContain('6755');
  expect(after).toBe(before);
});

test('equal content has an equal digest, and one byte makes another', async () => {
  using dir = scratch();
  const digestOf = async (name: string, content: string) => {
    const answer = await runImport(
      { image: join(dir.path, name), limits },
      iterate(writeTar([text('a', content), text('b', 'b')])),
    );
    return 'ok' in answer ? answer.ok?.digest : undefined;
  };
  const first = await digestOf('1', 'x');
  expect(first).toMatch(/^[0-9a-f]{64}$/);
  expect(await digestOf('2', 'x')).toBe(first);
  expect(await digestOf('3', 'y')).not.toBe(first);
});

test('too many files, and too many bytes, end the import', async () => {
  using dir = scratch();
  const bomb = writeTar(Array.from({ length: 200 }, (_, index) => text(`f${index}`, 'x'.repeat(10_000))));
  const attempt = (name: string, own: LayerJob['limits']) =>
    runImport({ image: join(dir.path, name), limits: own }, iterate(bomb));
  expect(await attempt('inodes', { ...limits, inodesMax: 100 })).toMatchObject({ error: { code: 'no_space' } });
  expect(await attempt('bytes', { ...limits, bytesMax: 1_000_000 })).toMatchObject({ error: { code: 'no_space' } });
  // Compressed, hundreds of megabytes of zeros are small.
  const size = 300_000_000;
  const zeros = Bun.spawnSync(['sh', '-c', `head -c ${size} /dev/zero | gzip -1`]).stdout;
  expect(zeros.length).toBeLessThan(2_000_000);
  const header = Buffer.from(writeTar([text('zeros', '')]).subarray(0, 512));
  header.write(size.toString(8).padStart(11, '0'), 124);
  header.fill(' ', 148, 156);
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  );
  const gzip = Buffer.concat([Bun.gzipSync(header), zeros]);
  expect(
    await runImport({ image: join(dir.path, 'zeros'), limits: { ...limits, bytesMax: 50_000_000 } }, iterate(gzip)),
  ).toMatchObject({ error: { code: 'no_space' } });
});

test('whiteouts and opaque directories are what an overlay understands', async () => {
  using dir = scratch();
  const image = join(dir.path, 'image');
  const fd = openSync(image, 'wx+');
  const writer = createImageWriter(fd, limits);
  const opaque: DirectoryNode = { ...newDirectory(), opaque: true };
  const root = newDirectory();
  root.entries.set('gone', { kind: 'whiteout' });
  root.entries.set('fresh', opaque);
  writer.finish(root);
  closeSync(fd);
  const script = `mkdir lower view top; mkdir lower/gone lower/fresh lower/stays; : > lower/fresh/old; mount -t erofs -o ro ${image} top; mount -t overlay -o ro,lowerdir=top:lower none view; ls view view/fresh`;
  const shown = Bun.spawnSync(['unshare', '--mount', 'sh', '-ec', script], { cwd: dir.path });
  expect(shown.stdout.toString().split('\n').filter(Boolean)).toEqual(['view:', 'fresh', 'stays', 'view/fresh:']);
});
