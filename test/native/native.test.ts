import { afterAll, beforeAll, expect, test } from 'bun:test';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { killIfThere } from '../../src/base/if-there.ts';
import { isPartLost } from '../../src/protocol/part-lost.ts';
import { operations } from '../../src/node/native/operations.ts';
import { helperOf, type Helper } from '../../src/node/native/helper.ts';
import { programsAtOnce, type ProgramKind } from '../../src/node/native/program-places.ts';
import { startHelperProcess, type HelperProcess } from '../../src/node/native/helper-process.ts';
import { waitFor } from '../support/process.ts';
import { initSources } from '../../scripts/setup/agent.mjs';
import { inside, preloaded } from '../../scripts/setup/native-helper.mjs';
import { compileSanitized, compileStandalone, nativeCorpus, nativeTargets } from '../../scripts/setup/native-tests.mjs';

// The C programs with the address and undefined-behaviour sanitizers: any finding ends the program, and the test with
// it.

const root = join(import.meta.dir, '../..');
const runs = 1_000;

let directory = '';
let process: HelperProcess;
let helper: Helper;
const made = (name: string) => join(directory, name);

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'atoll-native-'));
  const sources = readdirSync(join(root, 'native')).filter(name => name.endsWith('.c'));
  const inHelper = sources.filter(name => !inside.includes(name) && !preloaded.includes(name));
  expect(inHelper.length).toBeGreaterThan(8);
  compileSanitized(
    root,
    made('helper'),
    inHelper.map(name => `native/${name}`),
  );
  compileSanitized(root, made('init'), initSources);
  mkdirSync(made('run'));
  mkdirSync(made('run/scratch'));
  process = await startHelperProcess({ binary: made('helper'), runDir: made('run'), onLost() {} });
  helper = helperOf(process);
}, 120_000);

afterAll(async () => {
  await helper?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const run = (argv: string[], options: { stdin?: Buffer } = {}) => {
  const { exitCode, stdout, stderr } = Bun.spawnSync(argv, { stdin: options.stdin ?? 'ignore' });
  return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
};

test('requests are read as they were meant, or not at all', () => {
  compileSanitized(root, made('request-test'), ['test/native/request.c', 'native/request.c']);
  const { exitCode, stdout, stderr } = run([made('request-test')]);
  expect(stderr).toBe('');
  expect(exitCode).toBe(0);
  expect(Number(stdout)).toBeGreaterThan(15);
});

for (const name of Object.keys(nativeTargets)) {
  test(`${name}: ${runs} inputs, and those that failed once`, () => {
    compileStandalone(root, name, made(`fuzz-${name}`));
    const files = nativeCorpus(root, name);
    expect(files.length).toBeGreaterThan(0);
    expect(run([made(`fuzz-${name}`), String(runs), '1', ...files])).toEqual({ exitCode: 0, stdout: '', stderr: '' });
  }, 60_000);
}

test('programs end with a helper that is killed', async () => {
  const runDir = made('left');
  mkdirSync(join(runDir, 'scratch'), { recursive: true });
  const killed = await startHelperProcess({ binary: made('helper'), runDir, onLost() {} });
  const marker = join(runDir, 'pid');
  const spawned = helperOf(killed)
    .spawn(['sh', '-c', `echo $$ > ${marker}; exec sleep 600`], { timeoutMs: 600_000 })
    .catch(isPartLost);
  const program = await waitFor('the program', () => existsSync(marker) && Number(readFileSync(marker, 'utf8')));
  const parent = Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${program}/status`, 'utf8'))?.[1]);
  killIfThere(parent);
  expect(await spawned).toBe(true);
  await waitFor('the end of the program', () => !existsSync(`/proc/${program}`));
});

/**
 * Where this machine has cgroups, for each version that it has. Beside version 1, the helper hides those of version 2
 * for itself, but not for others.
 */
const hierarchies = () => {
  const root = `/proc/${globalThis.process.pid}/root/sys/fs/cgroup`;
  const v1 = ['pids', 'freezer', 'memory']
    .map(name => join(root, name))
    .filter(path => existsSync(join(path, 'tasks')));
  const v2 = [root, join(root, 'unified')].filter(path => existsSync(join(path, 'cgroup.controllers')));
  return [v1, v2].filter(({ length }) => length > 0);
};

test('a program is in its control groups from its first moment, and does not begin where one is missing', async () => {
  const all = hierarchies();
  expect(all.length).toBeGreaterThan(0);
  for (const version of all) {
    const own = `atoll-test-born-${globalThis.process.pid}`;
    const groups = version.map(path => join(path, own));
    for (const group of groups) mkdirSync(group);
    try {
      const { output } = await helper.spawn(['grep', '-c', `:/${own}$`, '/proc/self/cgroup'], {
        timeoutMs: 10_000,
        groups,
      });
      expect(output.trim()).toBe(String(groups.length));
      const elsewhere = await helper.spawn(['grep', '-c', own, '/proc/self/cgroup'], { timeoutMs: 10_000 });
      expect(elsewhere.output.trim()).toBe('0');
    } finally {
      for (const group of groups) rmdirSync(group);
    }
    await expect(helper.spawn(['true'], { timeoutMs: 10_000, groups })).rejects.toThrow('control groups');
  }
});

test('nothing is left of a helper that is killed while it maps owners', async () => {
  const runDir = made('mapping');
  for (const name of ['scratch', 'from', 'to']) mkdirSync(join(runDir, name), { recursive: true });
  const left = () => run(['pgrep', '-f', `${runDir}/helper`]).exitCode === 0;
  for (let time = 0; time < 20; time++) {
    const killed = await startHelperProcess({ binary: made('helper'), runDir, onLost() {} });
    const mount = { baseId: 200_000, source: join(runDir, 'from'), at: join(runDir, 'to') };
    const map = () => helperOf(killed).call('mapped-mount', mount);
    await map();
    const rest = Promise.allSettled(Array.from({ length: 40 }, map));
    await Bun.sleep(time % 5);
    killIfThere(killed.pid);
    await rest;
    await waitFor('the end of the helper', () => !left());
  }
});

test('the helper starts programs, says how they ended, and watches and ends processes', async () => {
  expect(await helper.spawn(['sh', '-c', 'cat; exit 3'], { timeoutMs: 10_000, stdin: 'a line' })).toEqual({
    status: 3,
    output: 'a line ',
  });
  const long = await helper.spawn(['head', '-c', '100000', '/dev/zero'], { timeoutMs: 10_000 });
  expect(long.status).toBe(0);
  expect((await helper.spawn(['/nonexistent'], { timeoutMs: 10_000 })).status).toBe(127);
  expect((await helper.spawn(['sleep', '60'], { timeoutMs: 50 })).status).toBe(128 + 9);
  // More than it runs at a time.
  const kinds = Object.keys(programsAtOnce) as ProgramKind[];
  const each = (kind: ProgramKind) =>
    Array.from({ length: 80 }, () => helper.spawn(['true'], { timeoutMs: 60_000, kind }));
  for (const { status } of await Promise.all(kinds.flatMap(each))) expect(status).toBe(0);
  const child = Bun.spawn(['sleep', '60']);
  const exited = helper.exited('tag');
  await helper.call('watch', { tag: 'tag', pid: child.pid });
  await helper.call('kill', { tag: 'tag' });
  await exited;
  await expect(helper.call('kill', { tag: 'tag' })).rejects.toThrow('no such watched process');
});

test('it says when what a program left behind has closed its output, or writes to it', async () => {
  const fifo = made('fifo');
  expect(run(['mkfifo', fifo]).exitCode).toBe(0);
  const starts = { closes: `cat ${fifo} > /dev/null`, writes: `cat ${fifo}`, ends: 'true' };
  for (const [tag, left] of Object.entries(starts)) {
    const output = tag === 'closes' ? '; exec > /dev/null 2>&1; sleep 0.5' : '; exec sleep 0.5';
    const started = await helper.start(tag, ['sh', '-c', `(${left}${output}) & echo before; exit 3`], {
      timeoutMs: 10_000,
    });
    expect(started).toMatchObject({ status: 3, output: 'before ' });
    let closed = false;
    const whenClosed = started.closed.then(() => (closed = true));
    if (tag !== 'ends') {
      await helper.call('watch', { tag: 'self', pid: globalThis.process.pid }); // it has looked at all since
      expect(closed).toBe(false);
      writeFileSync(fifo, 'sign');
    }
    await whenClosed;
  }
  const none = await helper.start('none', ['/nonexistent'], { timeoutMs: 10_000 });
  expect(none.status).toBe(127);
  await none.closed;
  // None of them has kept a place for a program.
  for (let time = 0; time < 70; time++) await (await helper.start('tag', ['true'], { timeoutMs: 10_000 })).closed;
});

test('what the helper can’t do is told and nothing else happens', async () => {
  await expect(process.request(['no-such'])).rejects.toThrow('unknown operation');
  await expect(process.request(['watch', 'tag'])).rejects.toThrow('too few arguments');
  await expect(process.request(['spawn', ...new Array<string>(300).fill('x')])).rejects.toThrow('malformed request');
  await expect(
    process.request(['link-up', '1', 'x', '1.2.3.4', '1.2.3.5', '1.2.3.6', 'no', 'address', '1500']),
  ).rejects.toThrow('link-layer address');
  const link = ['link-up', '1', 'x', '1.2.3.4', '1.2.3.5', '1.2.3.6', '02:00:00:00:00:01', '02:00:00:00:00:02', '1500'];
  await expect(process.request([...link, 'fd00::1', 'fd00::2', '1.2.3.4'])).rejects.toThrow('IPv6 address');
  await expect(helper.call('disk-mount', { image: made('none'), at: made('mount') })).rejects.toThrow();
  await expect(helper.call('layer-mount', { image: made('none'), at: made('mount') })).rejects.toThrow();
  await expect(helper.call('seal', { name: 'name', path: made('none') })).rejects.toThrow();
  await expect(process.request(['view', '1', '2'])).rejects.toThrow('too few arguments');
  const refused = helper.call('unmount', { at: 'a\nb' });
  await expect(refused).rejects.toMatchObject({ code: 'invalid' });
  expect(helper.alive()).toBe(true);
});

test('whoever waits for a helper that is killed hears that the platform starts it again', async () => {
  mkdirSync(made('killed'));
  mkdirSync(made('killed/scratch'));
  const killed = await startHelperProcess({ binary: made('helper'), runDir: made('killed'), onLost() {} });
  const waiting = killed.request(['spawn', '60000', '', '', 'sleep', '60']).catch((error: unknown) => error);
  Bun.spawnSync(['kill', '-9', String(killed.pid)]);
  expect(isPartLost(await waiting)).toBe(true);
  expect(isPartLost(await killed.request(['spawn', '1', '', '', 'true']).catch((error: unknown) => error))).toBe(true);
});

test('the table of operations and the helper know the same', () => {
  const text = readFileSync(join(root, 'native/helper.c'), 'utf8');
  const list = text.slice(text.indexOf('} operations[] = {'));
  const known = [...list.slice(0, list.indexOf('};')).matchAll(/\{"([a-z-]+)", (\d+),/g)].map(([, name = '']) => name);
  expect(known.length).toBeGreaterThan(15);
  expect(known.sort()).toEqual(Object.keys(operations).sort());
});

test('requests that a socket does not take at once arrive whole and in order', async () => {
  const count = 2_000;
  const path = (index: number) => made(`${'x'.repeat(200)}-${index}`);
  const answers = await Promise.all(
    Array.from({ length: count }, (_, index) => helper.call('disk-used', { image: path(index) })),
  );
  expect(answers).toEqual(Array.from({ length: count }, () => ({ used: false })));
});

test('disks are copied with their holes, and mounted and taken away again', async () => {
  const image = made('disk.img');
  closeSync(openSync(image, 'w'));
  truncateSync(image, 32 << 20);
  expect(run(['mkfs.ext4', '-q', image]).exitCode).toBe(0);
  await helper.call('disk-create', { from: image, to: made('copy.img') });
  expect(statSync(made('copy.img')).size).toBe(32 << 20);
  expect(run(['cmp', image, made('copy.img')]).exitCode).toBe(0);
  await expect(helper.call('disk-create', { from: image, to: made('copy.img') })).rejects.toThrow('File exists');
  const { device } = await helper.call('disk-mount', { image: made('copy.img'), at: made('disk') });
  expect(device).toMatch(/^\/dev\/loop\d+$/);
  await helper.call('unmount', { at: made('disk') });
});

test('a snapshot’s files are sealed, and any change of them is seen', () => {
  const folder = made('sealed');
  mkdirSync(folder);
  writeFileSync(join(folder, 'a'), 'content');
  writeFileSync(join(folder, 'empty'), '');
  writeFileSync(join(folder, 'large'), Buffer.alloc(300_000, 7));
  writeFileSync(join(folder, 'pages-1.img'), 'memory');
  const program = (name: string, ...rest: string[]) => run([made('helper'), name, folder, ...rest]);
  expect(program('seal').exitCode).toBe(0);
  expect(program('verify').exitCode).toBe(0);
  expect(program('flush').exitCode).toBe(0);
  expect(program('flush', 'checksums').exitCode).toBe(0);
  expect(program('flush', 'none')).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('none: ') });
  writeFileSync(join(folder, 'pages-1.img'), 'Memory');
  expect(program('verify', 'rest').exitCode).toBe(0);
  const changed = { exitCode: 1, stderr: expect.stringContaining('pages-1.img: has other content') };
  expect(program('verify', 'memory')).toMatchObject(changed);
  expect(program('verify')).toMatchObject(changed);
  writeFileSync(join(folder, 'pages-1.img'), 'memory');
  writeFileSync(join(folder, 'a'), 'Content');
  expect(program('verify', 'memory').exitCode).toBe(0);
  expect(program('verify', 'rest')).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('a: has other') });
  expect(program('verify')).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('a: has other content') });
  writeFileSync(join(folder, 'checksums'), 'no checksums');
  expect(program('verify')).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('malformed') });
});

test('each piece of a memory image is checked by itself, with what was before it or without', () => {
  const folder = made('pieces');
  const piece = 2 ** 20;
  mkdirSync(folder);
  mkdirSync(join(folder, 'group'));
  const image = Buffer.alloc(3.5 * piece);
  for (let at = 0; at < image.length; at += 4) if (Math.floor(at / piece) !== 1) image.writeUInt32LE(at, at);
  writeFileSync(join(folder, 'pages-1.img'), image);
  writeFileSync(join(folder, 'pages-2.img'), 'short');
  // Twice: the checksums must not cover their own file.
  for (let times = 0; times < 2; times++) expect(run([made('helper'), 'checksum', folder]).exitCode).toBe(0);
  expect(run([made('helper'), 'verify', folder]).exitCode).toBe(0);
  const sums = readFileSync(join(folder, 'memory-sums'), 'utf8').trim().split('\n');
  expect(sums).toHaveLength(2 + 4 + 1);
  expect(sums).toContain(`image pages-1.img ${image.length}`);
  const verify = (from: number, to: number, file = 'pages-1.img') => {
    const lines = [`group ${folder}/group`, `snapshot ${folder}`, `directory ${folder}`, `now ${file} ${from} ${to}`];
    writeFileSync(join(folder, 'plan'), `${lines.join('\n')}\n`);
    return run([made('helper'), 'verify-now', join(folder, 'plan')]);
  };
  expect([verify(0, 4).exitCode, verify(0, 1, 'pages-2.img').exitCode]).toEqual([0, 0]);
  expect(verify(0, 5)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('pages-1.img: ') });
  expect(verify(0, 1, 'pages-3.img').exitCode).toBe(1);
  for (const [at, where] of [
    [10, 0],
    [piece + 10, 1],
    [image.length - 1, 3],
  ] as const) {
    const changed = Buffer.from(image);
    changed[at] = (changed[at] as number) ^ 1;
    writeFileSync(join(folder, 'pages-1.img'), changed);
    expect([0, 1, 2, 3].filter(number => verify(number, number + 1).exitCode !== 0)).toEqual([where]);
  }
});

test('who waits to bring memory ends when it is told to, and without a plan does not begin', () => {
  const folder = made('later');
  mkdirSync(folder);
  writeFileSync(join(folder, 'pages-1.img'), 'memory');
  expect(run([made('helper'), 'checksum', folder]).exitCode).toBe(0);
  const plan = join(folder, 'plan');
  writeFileSync(
    plan,
    `group ${folder}\nsnapshot ${folder}\ndirectory ${folder}\nprocess 2 pages-1.img\npiece 0 4096 0\n`,
  );
  expect(run([made('helper'), 'bring-later', plan]).exitCode).toBe(0);
  expect(readdirSync(folder)).toContain('lazy-pages.socket');
  expect(run([made('helper'), 'end-later', plan, folder]).exitCode).toBe(0);
  expect(readdirSync(folder)).not.toContain('plan');
  expect(run([made('helper'), 'wait-later', plan]).exitCode).toBe(0);
  for (const [text, what] of [
    ['', 'the plan'],
    [`group ${folder}\nwhatever\n`, 'the plan'],
    [`group ${folder}\nsnapshot ${folder}\ndirectory ${folder}\nprocess 2 pages-2.img\n`, 'pages-2.img'],
  ] as const) {
    writeFileSync(plan, text);
    expect(run([made('helper'), 'bring-later', plan])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(what),
    });
    expect(run([made('helper'), 'wait-later', plan]).exitCode).toBe(1);
  }
});

/** Packs and unpacks as for CRIU; 77: that is work for tar. */
const asCriu = {
  pack: (directory: string) => Bun.spawnSync([made('tar'), '--create', '--gzip', '--directory', directory, '.']),
  unpack: (archive: string, directory: string) =>
    Bun.spawnSync([made('tar'), '--extract', '--gzip', '--directory', directory], { stdin: Bun.file(archive) })
      .exitCode,
};
const tree = (directory: string) =>
  run(['find', directory, '-printf', '%P %y %m %U %G %Ts %l\n']).stdout.split('\n').toSorted();

test('memory that threads move is where it belongs, whoever of them waits for a processor', () => {
  compileSanitized(root, made('later-moves'), ['test/native/later-moves.c', 'native/snapshot-hash.c']);
  const { exitCode, stdout, stderr } = run([made('later-moves'), '5000']);
  expect([exitCode, stderr]).toEqual([0, '']);
  expect(Number(stdout)).toBeGreaterThan(100_000);
}, 60_000);

test('file systems that hold next to nothing are packed and unpacked as tar does it, others are left to tar', async () => {
  compileSanitized(root, made('tar'), ['test/native/tar.c', 'native/criu-tar.c', 'native/gzip.c']);
  const from = made('packed');
  for (const folder of ['', 'pts', 'deep/er']) mkdirSync(join(from, folder), { recursive: true });
  writeFileSync(join(from, 'null'), '', { mode: 0o666 });
  symlinkSync('/proc/self/fd', join(from, 'fd'));
  symlinkSync('../null', join(from, 'deep/er/link'));
  chownSync(join(from, 'pts'), 1000, 65_534);
  chmodSync(join(from, 'null'), 0o4646);
  chmodSync(from, 0o1777);
  for (const [name, time] of [
    ['null', 1],
    ['deep/er', 1_000_000_000],
    ['pts', 3],
    ['', 4],
  ] as const)
    utimesSync(join(from, name), time, time);
  const wanted = tree(from);
  const ours = asCriu.pack(from);
  expect(ours.exitCode).toBe(0);
  writeFileSync(made('ours.tgz'), ours.stdout);
  const theirs = Bun.spawnSync(['tar', '--create', '--numeric-owner', '--directory', from, '.']).stdout;
  writeFileSync(made('theirs.tgz'), gzipSync(theirs, { level: 0 }));
  const intos = ['ours-ours', 'ours-theirs', 'theirs-ours'].map(made);
  for (const into of intos) mkdirSync(into);
  expect(asCriu.unpack(made('ours.tgz'), made('ours-ours'))).toBe(0);
  expect(
    run(['tar', '--extract', '--gzip', '--directory', made('ours-theirs'), '--file', made('ours.tgz')]),
  ).toMatchObject({ exitCode: 0, stderr: '' });
  expect(asCriu.unpack(made('theirs.tgz'), made('theirs-ours'))).toBe(0);
  for (const into of intos) expect(tree(into)).toEqual(wanted);

  writeFileSync(made('compressed.tgz'), gzipSync(theirs));
  writeFileSync(made('cut.tgz'), ours.stdout.subarray(0, -20));
  const damaged = Buffer.from(ours.stdout);
  damaged[600] = (damaged[600] as number) ^ 1;
  writeFileSync(made('damaged.tgz'), damaged);
  const untouched = made('untouched');
  mkdirSync(untouched);
  for (const name of ['compressed', 'cut', 'damaged']) expect(asCriu.unpack(made(`${name}.tgz`), untouched)).toBe(77);
  for (const name of ['../up', './../up', './up/..', '/up', 'up']) {
    const hostile = Bun.spawnSync([
      'tar',
      '--create',
      '--absolute-names',
      '--no-recursion',
      `--transform=s,^.*$,${name},`,
      '--directory',
      from,
      'pts',
    ]).stdout;
    writeFileSync(made('hostile.tgz'), gzipSync(hostile, { level: 0 }));
    expect([name, asCriu.unpack(made('hostile.tgz'), untouched)]).toEqual([name, 77]);
  }
  expect(readdirSync(untouched)).toEqual([]);

  const others: Record<string, (path: string) => unknown> = {
    content: path => writeFileSync(path, 'x'),
    'a second name': path => linkSync(join(from, 'null'), path),
    'a pipe': path => run(['mkfifo', path]),
    'a long name': () => writeFileSync(join(from, 'n'.repeat(99)), ''),
    'a long link': path => symlinkSync('l'.repeat(100), path),
    'many files': () => Array.from({ length: 600 }, (_, index) => writeFileSync(join(from, `f${index}`), '')),
  };
  for (const [what, makeOne] of Object.entries(others)) {
    makeOne(join(from, 'other'));
    expect([what, asCriu.pack(from).exitCode]).toEqual([what, 77]);
    rmSync(join(from, 'other'), { force: true });
    rmSync(join(from, 'n'.repeat(99)), { force: true });
  }
});

test('checksums have their name when they are whole', async () => {
  const folder = made('cut-off');
  mkdirSync(folder);
  writeFileSync(join(folder, 'a'), 'content');
  const seal = () => Bun.spawn([made('helper'), 'seal', folder], { stderr: 'ignore' });
  const names = () => readdirSync(folder).filter(name => name.startsWith('checksums'));
  for (const before of [[], ['checksums']]) {
    // Nobody ever writes into the pipe: the program stands still in the middle of its work.
    expect(run(['mkfifo', join(folder, 'pipe')]).exitCode).toBe(0);
    const program = seal();
    await waitFor('the program', () => names().includes('checksums.partial'));
    program.kill('SIGKILL');
    await program.exited;
    expect(names().toSorted()).toEqual([...before, 'checksums.partial']);
    rmSync(join(folder, 'pipe'));
    expect(await seal().exited).toBe(0);
    expect(names()).toEqual(['checksums']);
    expect(run([made('helper'), 'verify', folder]).exitCode).toBe(0);
    expect(readFileSync(join(folder, 'checksums'), 'utf8')).toMatch(/^[0-9a-f]{16} 7 a\n$/);
  }
});

test('the helper’s other programs refuse what they can’t do', () => {
  expect(run([made('helper'), 'with-faults', '/nonexistent/program'])).toMatchObject({ exitCode: 1 });
  expect(run([made('helper'), 'cut', '0'])).toMatchObject({ exitCode: 1 });
  expect(
    run([made('helper'), 'watch-paths', '0', '/nonexistent', made('irmap'), made('none'), made('none')]),
  ).toMatchObject({ exitCode: 1 });
  expect(run([made('helper'), 'remove-beneath', directory, '../etc']).exitCode).not.toBe(0);
  expect(run([made('helper')]).exitCode).toBe(2);
});

test('a tree is removed in the same memory however deep it is, also where its names look moved', () => {
  const tree = mkdtempSync('/dev/shm/atoll-native-');
  mkdirSync(join(tree, 'moved-up-0', 'below'), { recursive: true });
  const [chain, next] = [join(tree, 'chain'), join(tree, 'next')];
  mkdirSync(chain);
  // From its end: no path is ever long.
  for (let level = 0; level < 20_000; level++) {
    mkdirSync(next);
    renameSync(chain, join(next, 'n'.repeat(250)));
    renameSync(next, chain);
  }
  // Without the sanitizers, which need memory themselves.
  const built = run(['gcc', '-o', made('small-init'), ...initSources.map(source => join(root, source))]);
  expect(built).toMatchObject({ exitCode: 0 });
  expect(run(['prlimit', `--data=${16 << 20}`, made('small-init'), 'remove', tree])).toMatchObject({
    exitCode: 0,
    stderr: '',
  });
  expect(existsSync(tree)).toBe(false);
});

const makeWatcher = () =>
  expect(
    run(['gcc', '-Wall', '-Wextra', '-Werror', '-o', made('watcher'), join(root, 'test/native/watcher.c')]),
  ).toMatchObject({ exitCode: 0, stderr: '' });

test('each of many watches is found where its file is by now, once', async () => {
  makeWatcher();
  const tree = mkdtempSync('/dev/shm/atoll-native-');
  const files = Array.from({ length: 400 }, (_, number) => `${number % 7}/file-${number}`);
  for (const file of files) {
    mkdirSync(join(tree, file, '..'), { recursive: true });
    writeFileSync(join(tree, file), '');
  }
  const watcher = Bun.spawn([made('watcher'), tree, ...files], { stdout: 'pipe' });
  try {
    await watcher.stdout.getReader().read();
    const [renamed = '', ...others] = files;
    renameSync(join(tree, renamed), join(tree, 'renamed'));
    writeFileSync(made('group'), String(watcher.pid));
    const program = [made('helper'), 'watch-paths', String(watcher.pid), made('group'), made('irmap'), tree, tree];
    expect(run(program)).toMatchObject({ exitCode: 0, stderr: '' });
    const found = readFileSync(made('irmap'), 'latin1').match(/\/(?:\d\/file-\d+|renamed)/g) ?? [];
    expect(found.toSorted()).toEqual([...others.map(file => `/${file}`), '/renamed'].toSorted());
  } finally {
    watcher.kill('SIGKILL');
    await watcher.exited;
    rmSync(tree, { recursive: true });
  }
});

test('a watch is found deep in a tree on a small stack', async () => {
  makeWatcher();
  // On a file system that shares one inode number between a file and a directory.
  const tree = mkdtempSync('/dev/shm/atoll-native-');
  const deep = `${'d/'.repeat(900)}file`;
  mkdirSync(join(tree, deep, '..'), { recursive: true });
  writeFileSync(join(tree, deep), '');
  const watcher = Bun.spawn([made('watcher'), tree, deep], { stdout: 'pipe' });
  try {
    await watcher.stdout.getReader().read();
    writeFileSync(made('group'), String(watcher.pid));
    const program = [made('helper'), 'watch-paths', String(watcher.pid), made('group'), made('irmap'), tree, tree];
    expect(run(['sh', '-c', 'ulimit -s 1024; exec "$@"', 'sh', ...program])).toMatchObject({ exitCode: 0, stderr: '' });
    expect(readFileSync(made('irmap'), 'latin1')).toContain(`/${deep}`);
  } finally {
    watcher.kill('SIGKILL');
    await watcher.exited;
    rmSync(tree, { recursive: true });
  }
});

test('init goes on where a tracer that is killed has left it at a breakpoint, with foreign registers', async () => {
  expect(
    run(['gcc', '-Wall', '-Wextra', '-Werror', '-o', made('killed-tracer'), join(root, 'test/native/killed-tracer.c')]),
  ).toMatchObject({ exitCode: 0, stderr: '' });
  const init = Bun.spawn([made('init'), 'serve', '--port', '0', '--', '/bin/sleep', '600'], {
    stdin: Buffer.from('token\n'),
  });
  const agent = () => readFileSync(`/proc/${init.pid}/task/${init.pid}/children`, 'utf8').trim();
  const isSleep = (pid: string) => pid !== '' && run(['cat', `/proc/${pid}/comm`]).stdout.trim() === 'sleep';
  try {
    for (const moment of ['before', 'after', 'before']) {
      const former = await waitFor('the agent', () => isSleep(agent()) && agent());
      expect(Bun.spawnSync([made('killed-tracer'), String(init.pid), moment]).signalCode).toBe('SIGKILL');
      // A signal from others is no breakpoint, and ends nothing.
      init.kill('SIGTRAP');
      globalThis.process.kill(Number(former), 'SIGKILL');
      await waitFor('another agent', () => isSleep(agent()) && agent() !== former);
    }
    expect(init.exitCode).toBeNull();
  } finally {
    init.kill('SIGTERM');
    await init.exited;
  }
  expect(init.exitCode).toBe(0);
});

test('init starts the agent so that no other process can look into it from the beginning', async () => {
  const report = made('dumpable');
  const program =
    'import ctypes,sys,time; open(sys.argv[1],"w").write(str(ctypes.CDLL(None).prctl(3))); time.sleep(600)';
  const init = Bun.spawn([made('init'), 'serve', '--port', '0', '--', '/usr/bin/python3', '-c', program, report], {
    stdin: Buffer.from('token\n'),
  });
  try {
    const value = await waitFor('the report', () => existsSync(report) && readFileSync(report, 'utf8'));
    // 1 would be dumpable; any other value is the host's choice (fs.suid_dumpable).
    expect(value).toBe(readFileSync('/proc/sys/fs/suid_dumpable', 'utf8').trim());
  } finally {
    init.kill('SIGTERM');
    await init.exited;
  }
});

test('process 1 starts and signals programs for the agent, and refuses what it can not read', () => {
  writeFileSync(made('script'), 'echo from a script\n', { mode: 0o755 });
  compileSanitized(root, made('spawner-test'), ['test/native/spawner.c', 'native/spawner.c', 'native/program.c']);
  const { exitCode, stdout, stderr } = run(['env', `SCRIPT=${made('script')}`, made('spawner-test')]);
  expect(stderr).toBe('');
  expect(exitCode).toBe(0);
  expect(Number(stdout)).toBeGreaterThan(50);
}, 60_000);

test('init removes trees without following links', () => {
  const tree = made('tree');
  mkdirSync(join(tree, 'a/b/c'), { recursive: true });
  mkdirSync(made('kept'));
  writeFileSync(made('kept/file'), '');
  writeFileSync(join(tree, 'a/file'), '');
  symlinkSync(made('kept'), join(tree, 'a/link'));
  expect(run([made('init'), 'remove', tree])).toEqual({ exitCode: 0, stdout: '', stderr: '' });
  expect([existsSync(tree), existsSync(made('kept/file'))]).toEqual([false, true]);
  expect(readFileSync(made('kept/file'), 'utf8')).toBe('');
});
