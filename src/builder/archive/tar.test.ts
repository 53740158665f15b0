import { expect, test } from 'bun:test';
import { readTar, type TarEntry } from './tar.ts';
import { writeTar } from '../../base/write-tar.ts';

const attributes = { mode: 0o640, uid: 7, gid: 8 };

async function* inParts(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function read(bytes: Uint8Array, partSize = 100): Promise<(TarEntry & { text: string })[]> {
  const entries = [];
  for await (const entry of readTar(inParts(bytes, partSize))) {
    let text = '';
    await entry.content(part => (text += Buffer.from(part).toString('latin1')));
    entries.push({ ...entry, text });
  }
  return entries;
}

/** Output of GNU tar with these options. */
function gnuTar(script: string, ...options: string[]): Uint8Array {
  const result = Bun.spawnSync([
    'sh',
    '-c',
    `set -e; d=$(mktemp -d); cd "$d"; ${script}; tar ${options.join(' ')} -cf - .; cd /; rm -rf "$d"`,
  ]);
  if (result.exitCode !== 0) throw new Error(result.stderr.toString());
  return result.stdout;
}

test('what is written reads back the same, however it is cut into parts', async () => {
  const archive = writeTar([
    { path: 'dir', type: 'directory', attributes },
    { path: 'dir/file', type: 'file', attributes, content: Buffer.from('x'.repeat(1000)) },
    { path: 'link', type: 'symlink', attributes, target: 'dir/file' },
  ]);
  for (const size of [1, 511, 512, 4096, archive.length]) {
    const entries = await read(archive, size);
    expect(entries.map(({ type, path, target, text }) => [type, path, target, text.length])).toEqual([
      ['directory', 'dir', '', 0],
      ['file', 'dir/file', '', 1000],
      ['symlink', 'link', 'dir/file', 0],
    ]);
    expect(entries[1]?.attributes).toMatchObject(attributes);
  }
});

test.each(['gnu', 'posix', 'ustar'])('%s archives: links, times, long names', async format => {
  const long = 'n'.repeat(format === 'ustar' ? 90 : 200);
  const script =
    `mkdir ${long}; echo content >${long}/${long}; ln ${long}/${long} hard; ln -s ${long} soft; ` +
    'touch -d @1234567890 hard; mkfifo pipe';
  const entries = await read(gnuTar(script, `--format=${format}`, '--sort=name'));
  const find = (path: string) => entries.find(entry => entry.path.replace(/^\.\/|\/$/g, '') === path);
  expect(find('pipe')?.type).toBe('fifo');
  expect(find('soft')?.target).toBe(long);
  const [first, second] = [find('hard'), find(`${long}/${long}`)];
  expect([first?.type, second?.type].sort()).toEqual(['file', 'link']);
  expect(first?.attributes.mtimeSeconds).toBe(1234567890);
  expect([first, second].map(entry => entry?.text).join('')).toBe('content\n');
});

test('extended attributes and large numbers of pax and GNU headers', async () => {
  const script = "echo x >f; python3 -c \"import os; os.setxattr('f', 'user.note', b'a=b\\\\n')\"";
  const [, file] = await read(gnuTar(script, '--format=posix', '--xattrs', '--sort=name'));
  expect(Buffer.from(file?.attributes.xattrs.get('user.note') ?? []).toString()).toContain('a=b');
  const old = await read(gnuTar('echo x >f; touch -d @9999999999 f', '--format=gnu', '--owner=:70000', '--group=:12'));
  // IDs beyond those of a sandbox become root's. Such times need the binary form.
  expect(old[1]?.attributes).toMatchObject({ uid: 0, gid: 12, mtimeSeconds: 9999999999 });
});

test('data that is no archive, or only the beginning of one, is refused', async () => {
  const archive = writeTar([{ path: 'f', type: 'file', attributes, content: Buffer.alloc(5000) }]);
  await expect(read(Buffer.from('x'.repeat(600)))).rejects.toThrow('not a tar archive');
  await expect(read(archive.subarray(0, 2000))).rejects.toThrow('ends in the middle');
  const broken = Buffer.from(archive);
  broken[3] = 99;
  await expect(read(broken)).rejects.toThrow('not a tar archive');
});
