import { expect } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { writeTar, type NewTarEntry } from '../../../src/base/write-tar.ts';
import { step } from '../../builds/support/build-node.ts';
import { makeImage, writeLayout } from '../../builds/support/oci-image.ts';
import { busyboxTree } from '../../builds/support/trees.ts';
import { readyOf, refusalOf, type BuildRange } from './build-attacks.ts';
import type { Attack } from './wall.ts';

const attributes = { mode: 0o644, uid: 0, gid: 0 };
const blockSize = 512;
const endBytes = 2 * blockSize;

const file = (path: string, content = 'x'): NewTarEntry => ({
  path,
  type: 'file',
  attributes,
  content: Buffer.from(content),
});
const link = (path: string, target: string): NewTarEntry => ({
  path,
  type: 'symlink',
  attributes: { ...attributes, mode: 0o777 },
  target,
});

/** An entry with a header as somebody else would write it: the checksum is corrected. */
function entry(base: NewTarEntry, change: (header: Buffer) => void): Uint8Array {
  const bytes = Buffer.from(writeTar([base])).subarray(0, -endBytes);
  const header = bytes.subarray(0, blockSize);
  change(header);
  header.fill(' ', 148, 156);
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
    'latin1',
  );
  return bytes;
}

const archive = (...parts: Uint8Array[]): Uint8Array => Buffer.concat([...parts, Buffer.alloc(endBytes)]);
const typed = (flag: string, base: NewTarEntry, more: (header: Buffer) => void = () => {}) =>
  entry(base, header => {
    header.write(flag, 156);
    more(header);
  });
const hardLink = (path: string, target: string) => typed('1', file(path, ''), header => header.write(target, 157));
/** Records of a pax header in front of a file. */
const pax = (records: string, base = file('f')) =>
  Buffer.concat([typed('x', file('pax', records)), entry(base, () => {})]);
const record = (key: string, value: string): string => {
  let length = key.length + value.length + 3;
  while (String(length).length + key.length + value.length + 3 !== length)
    length = String(length).length + key.length + value.length + 3;
  return `${length} ${key}=${value}\n`;
};

/** Archives that no honest program writes. */
const hostile: [name: string, archive: () => Uint8Array][] = [
  ['a name upwards', () => writeTar([file('../../../../stolen')])],
  ['a name upwards in the middle', () => writeTar([file('a/../../../stolen')])],
  ['a name upwards of a pax header', () => archive(pax(record('path', '../../../stolen')))],
  ['a name of 100,000 bytes', () => archive(pax(record('path', 'a/'.repeat(50_000))))],
  ['a name with a NUL', () => archive(pax(record('path', 'a\0b')))],
  ['a part of a name of 300 bytes', () => archive(pax(record('path', 'n'.repeat(300))))],
  ['a link to a target of 100,000 bytes', () => archive(pax(record('linkpath', 'a/'.repeat(50_000)), link('l', 'x')))],
  ['a link to nothing', () => archive(entry(link('l', 'x'), header => header.fill(0, 157, 257)))],
  ['a hard link to a file of the host', () => archive(hardLink('l', '/etc/shadow'))],
  ['a hard link upwards', () => archive(hardLink('l', '../../etc/shadow'))],
  [
    'links that lead in a circle, and a file through them',
    () => writeTar([link('a', 'b'), link('b', 'a'), file('a/f')]),
  ],
  ['a file of impossible size', () => archive(entry(file('f'), header => header.write('77777777777', 124)))],
  ['a file of negative size', () => archive(entry(file('f'), header => header.fill(0xff, 124, 136)))],
  ['a file that ends in the middle', () => writeTar([file('f', 'x'.repeat(4000))]).subarray(0, 2000)],
  [
    'a header of 2 MiB',
    () =>
      archive(
        typed('x', file('pax', 'x'.repeat(2 << 20))),
        entry(file('f'), () => {}),
      ),
  ],
  ['a sparse file', () => archive(typed('S', file('f')))],
  ['a wrong sum', () => Buffer.from(writeTar([file('f')])).fill('9', 148, 150)],
  ['bytes that are no archive', () => Buffer.alloc(10_000, 'x')],
  [
    'extended attributes of a megabyte',
    () =>
      archive(
        pax(
          Array.from({ length: 20 }, (_, index) => record(`SCHILY.xattr.user.a${index}`, 'x'.repeat(50_000))).join(''),
        ),
      ),
  ],
  ['records without an end', () => archive(pax('9'.repeat(100_000)))],
  ['a gzip that was cut off', () => gzipSync(writeTar([file('f', 'x'.repeat(100_000))])).subarray(0, 100)],
  [
    'a gzip of something else behind the first bytes',
    () => Buffer.concat([Buffer.from([0x1f, 0x8b]), Buffer.alloc(5000, 7)]),
  ],
  ['a zstd of something else', () => Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), Buffer.alloc(5000, 7)])],
];

/** What only image layers can express. */
const whiteouts: typeof hostile = [
  ['a whiteout of the directory above', () => writeTar([file('a/.wh...', '')])],
  ['a whiteout of the directory itself', () => writeTar([file('a/.wh..', '')])],
  ['a whiteout of nothing', () => writeTar([file('a/.wh.', '')])],
];

/** Odd archives that are nevertheless whole: they do no harm, and are read. */
const odd: typeof hostile = [
  ['a time that no clock says', () => archive(pax(record('mtime', '1e300')))],
  ['a time that is no number', () => archive(pax(record('mtime', 'soon')))],
  ['attributes of the overlay', () => archive(pax(record('SCHILY.xattr.trusted.overlay.redirect', '/etc')))],
  ['attributes without a name', () => archive(pax(record('SCHILY.xattr.user.', 'x')))],
  [
    'a device of the host',
    () =>
      archive(
        typed('4', file('f', '')),
        entry(file('g'), () => {}),
      ),
  ],
  ['owners beyond all', () => archive(entry(file('f'), header => header.fill(0x80, 108, 116)))],
];

/** Archives as uploaded files of a COPY, and as layers of an image. */
export function archiveAttacks(range: () => BuildRange): Attack[] {
  const copied = (bytes: Uint8Array) => {
    const { builds, build, small } = range();
    return build({
      source: { kind: 'state', state: small },
      steps: [{ ...step('COPY', '.', '/copied/'), filesHash: builds.upload(bytes) }],
    });
  };
  const imported = (name: string, bytes: Uint8Array) => {
    const { builds, build, host } = range();
    const directory = join(host, 'images', Bun.hash(name).toString(36));
    mkdirSync(directory, { recursive: true });
    writeLayout(
      makeImage([
        { tar: busyboxTree(), compression: 'none' },
        { tar: bytes, compression: 'none' },
      ]),
      directory,
    );
    builds.settings({ images: { small: join(host, 'images', 'small'), hostile: directory } });
    return build({ source: { kind: 'image', reference: 'hostile' } });
  };
  const honest = async () => void readyOf(await copied(writeTar([file('honest')])));
  return [
    ...hostile.map(([name, make]): Attack => [
      `uploaded files with ${name}`,
      async () => {
        refusalOf(await copied(make()));
        await honest();
      },
    ]),
    ...[...hostile.slice(0, 11), ...whiteouts].map(([name, make]): Attack => [
      `a layer of an image with ${name}`,
      async () => {
        refusalOf(await imported(name, make()));
        await honest();
      },
    ]),
    ...odd.map(([name, make]): Attack => [
      `files with ${name}`,
      async () => {
        const state = readyOf(await copied(make()));
        expect(await range().builds.inside(state, 'ls /copied && echo there')).toContain('there');
      },
    ]),
  ];
}
