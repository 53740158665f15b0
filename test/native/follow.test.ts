import { afterAll, beforeAll, expect, test } from 'bun:test';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killIfThere } from '../../src/base/if-there.ts';
import { readIfThere } from '../../src/base/small-file.ts';
import { waitFor } from '../support/process.ts';
import { compileSanitized } from '../../scripts/setup/native-tests.mjs';

// The checksums of images while somebody writes them, by the helper as built: native/snapshot-follow.c.

const root = join(import.meta.dir, '../..');
const helper = join(root, 'dist/helper');
let directory = '';
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'atoll-follow-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Its result for an image of 1,500,000 bytes. */
const earlier = {
  checksums: ['7edbd9c8e67b8f5a 1500000 pages-1.img', '7f5ccd291fe08fab 59 memory-sums'],
  'memory-sums': ['file pages-1.img 1500000', '9d927c281ea121fe', '7edbd9c8e67b8f5a'],
};

const run = (...argv: string[]) => Bun.spawnSync([helper, ...argv], { stderr: 'pipe' });

/** A directory, and a follower that already watches it. */
async function followed(name: string, ...more: string[]) {
  const folder = join(directory, name);
  mkdirSync(folder);
  const program = Bun.spawn([helper, 'follow', folder, ...more], { stderr: 'pipe' });
  const watches = () =>
    readdirSync(`/proc/${program.pid}/fdinfo`).some(fd =>
      readIfThere(`/proc/${program.pid}/fdinfo/${fd}`)?.includes('inotify wd'),
    );
  await waitFor('the watch', watches);
  return { folder, program, file: (image: string) => join(folder, image) };
}

// Images are appended to, as CRIU does: a program that writes a whole file at once first makes room for it, full of
// zeros.

/** Gives a directory its manifest, as src/node/snapshot/manifest.ts does. */
function complete(folder: string) {
  writeFileSync(join(folder, 'manifest.json.new'), '{}');
  renameSync(join(folder, 'manifest.json.new'), join(folder, 'manifest.json'));
}

const linesOf = (folder: string, file: string) => readFileSync(join(folder, file), 'utf8').split('\n').toSorted();

for (const more of [[], ['write-out']])
  test(`checksums of images that were followed are those of the images [${more.join()}]`, async () => {
    const { folder, program, file } = await followed(`grows${more.join()}`, ...more);
    writeFileSync(file('pages-4.img'), '');
    for (let times = 0; times < 12; times++) {
      appendFileSync(file('pages-1.img'), randomBytes(1_700_000));
      appendFileSync(file('pages-2.img'), randomBytes(4096));
      if (times === 4) writeFileSync(file('files.img'), 'files');
    }
    appendFileSync(file('pages-3.img'), randomBytes(2 ** 20));
    truncateSync(file('pages-3.img'), 5 * 2 ** 20);
    appendFileSync(file('pages-3.img'), 'after a hole');
    complete(folder);
    expect(await program.exited).toBe(0);
    expect(run('verify', folder).exitCode).toBe(0);
    const made = [
      linesOf(folder, 'memory-sums'),
      linesOf(folder, 'checksums').filter(line => !/memory-sums/.test(line)),
    ];
    expect(run('checksum', folder).exitCode).toBe(0);
    const again = [
      linesOf(folder, 'memory-sums'),
      linesOf(folder, 'checksums').filter(line => !/memory-sums/.test(line)),
    ];
    expect(made).toEqual(again);
    expect(made[1]).toHaveLength(1 + 1 + 1);
    const image = readFileSync(file('pages-1.img'));
    image[3_000_000] = (image[3_000_000] ?? 0) ^ 1;
    writeFileSync(file('pages-1.img'), image);
    expect(run('verify', folder, 'memory').stderr.toString()).toContain('pages-1.img: has other content');
  });

test('it takes no part in a directory that is removed, and needs nothing to have been written', async () => {
  const gone = await followed('removed');
  appendFileSync(gone.file('pages-1.img'), randomBytes(3 * 2 ** 20));
  rmSync(gone.folder, { recursive: true });
  expect(await gone.program.exited).toBe(1);
  expect(await new Response(gone.program.stderr).text()).toBe(`${gone.folder}: is gone\n`);
  const renamed = await followed('renamed');
  renameSync(renamed.folder, `${renamed.folder}-2`);
  expect(await renamed.program.exited).toBe(1);
  const late = join(directory, 'late');
  mkdirSync(late);
  writeFileSync(join(late, 'pages-1.img'), 'memory');
  complete(late);
  expect(run('follow', late).exitCode).toBe(0);
  expect(run('verify', late).exitCode).toBe(0);
  expect(run('follow', join(directory, 'none')).exitCode).toBe(1);
});

test('what grows beyond what was told is still taken in, and what shrinks is refused', async () => {
  const { folder, program, file } = await followed('shrinks');
  appendFileSync(file('pages-1.img'), randomBytes(4 * 2 ** 20));
  const state = () => readFileSync(`/proc/${program.pid}/io`, 'utf8').match(/rchar: (\d+)/)?.[1];
  await waitFor('the image to be taken in', () => Number(state()) >= 4 * 2 ** 20);
  truncateSync(file('pages-1.img'), 2 ** 20);
  complete(folder);
  expect(await program.exited).toBe(1);
  expect(await new Response(program.stderr).text()).toContain('pages-1.img');
});

test('checksums of an earlier release, which begin with the size of an image, are compared as they were made', () => {
  const folder = join(directory, 'earlier');
  mkdirSync(folder);
  // Made by the previous release, over this content.
  const content = Buffer.alloc(1_500_000, 'memory of an earlier release; ');
  writeFileSync(join(folder, 'pages-1.img'), content);
  for (const [name, lines] of Object.entries(earlier)) writeFileSync(join(folder, name), `${lines.join('\n')}\n`);
  expect(run('verify', folder).exitCode).toBe(0);
  const verifyPiece = (number: number) => {
    const plan = [
      `group ${folder}`,
      `snapshot ${folder}`,
      `directory ${folder}`,
      `now pages-1.img ${number} ${number + 1}`,
    ];
    writeFileSync(join(directory, 'plan'), `${plan.join('\n')}\n`);
    return run('verify-now', join(directory, 'plan')).exitCode;
  };
  expect([verifyPiece(0), verifyPiece(1)]).toEqual([0, 0]);
  rmSync(join(folder, 'memory-sums'));
  writeFileSync(join(folder, 'checksums'), earlier.checksums.filter(line => !/-sums/.test(line)).join('\n'));
  expect(run('verify', folder).exitCode).toBe(0);
  content[1_200_000] = 0;
  writeFileSync(join(folder, 'pages-1.img'), content);
  expect(run('verify', folder).exitCode).toBe(1);
});

test('a release before finds no line in `checksums` of an image, whose checksum it would not understand', () => {
  const folder = join(directory, 'back');
  mkdirSync(folder);
  const image = join(folder, 'pages-1.img');
  const content = randomBytes(2_500_000);
  writeFileSync(image, content);
  writeFileSync(join(folder, 'pages-2.img'), '');
  writeFileSync(join(folder, 'files.img'), 'files');
  expect(run('checksum', folder).exitCode).toBe(0);
  const named = () => linesOf(folder, 'checksums').flatMap(line => line.split(' ').slice(2));
  expect(named().toSorted()).toEqual(['files.img', 'memory-sums']);
  const verified = () => ['memory', 'rest'].map(part => run('verify', folder, part).exitCode);
  expect([...verified(), run('verify', folder).exitCode]).toEqual([0, 0, 0]);
  // A process that also wrote a line of an image wrote the same checksum.
  const sums = readFileSync(join(folder, 'memory-sums'), 'utf8').trim().split('\n');
  const last = sums[sums.indexOf('image pages-1.img 2500000') + 3];
  appendFileSync(join(folder, 'checksums'), `${last} 2500000 pages-1.img\n`);
  expect(verified()).toEqual([0, 0]);
  for (const changed of [content.subarray(1), Buffer.concat([content, Buffer.of(1)]), randomBytes(2_500_000)]) {
    writeFileSync(image, changed);
    expect(verified()).toEqual([1, 0]);
  }
  rmSync(image);
  expect(verified()).toEqual([1, 0]);
  writeFileSync(image, content);
  expect(verified()).toEqual([0, 0]);
  rmSync(join(folder, 'memory-sums'));
  expect(verified()).toEqual([1, 1]);
});

test('CRIU hears of no tracked connections, and other programs of theirs', () => {
  const program = join(directory, 'conntrack');
  compileSanitized(root, program, ['test/native/conntrack.c', 'native/criu-conntrack.c'], ['-ldl']);
  const asked = (environment: Record<string, string>) =>
    Bun.spawnSync([program], { env: { ...process.env, ...environment } }).stdout.toString();
  expect(asked({ ATOLL_CRIU_SOCKET: '/nowhere' })).toBe('107 0\n');
  expect(asked({})).toStartWith('101 ');
});

/** Gone, or dead and waiting to be reaped. */
const isGone = (pid: number) => !/^State:\t[^Z]/m.test(readIfThere(`/proc/${pid}/status`) ?? '');

test('what CRIU forks ends with it, and nobody else’s children do', async () => {
  const program = join(directory, 'criu-children');
  compileSanitized(root, program, ['test/native/criu-children.c', 'native/criu-children.c'], ['-ldl']);
  const left = (environment: Record<string, string>) =>
    Bun.spawnSync([program], { env: { ...process.env, ...environment } })
      .stdout.toString()
      .trim()
      .split(' ')
      .map(Number);
  const tied = left({ ATOLL_CHILDREN_END: '1' });
  const untied = left({});
  try {
    expect([tied.length, untied.length]).toEqual([2, 2]);
    await waitFor('their ends', () => tied.every(isGone));
    expect(untied.map(isGone)).toEqual([false, false]);
  } finally {
    for (const pid of [...tied, ...untied]) killIfThere(pid);
  }
});
