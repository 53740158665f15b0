import { afterAll, beforeAll, expect, test } from 'bun:test';
import { closeSync, fstatSync, readFileSync, readdirSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { newUuid } from '../../src/base/id.ts';
import type { NewVolumeEntry, NodeVolume } from '../../src/protocol/volume.ts';
import { nodeAt, serveNode } from '../../src/wire/node-service.ts';
import { silentLog } from '../../src/base/telemetry/log.ts';
import { holdingsOf } from '../support/leaks.ts';
import { runInSandbox } from '../node/support/run-in-sandbox.ts';
import { startTestNode, type TestNode } from '../node/support/test-node.ts';
import { waitFor } from '../support/process.ts';

// What clients can do with the content of a volume while hostile sandboxes write to it.

const sizeMiB = 32;
const plain: NewVolumeEntry = { uid: 9090, gid: 9090, mode: 0o666, force: false };
const forced: NewVolumeEntry = { ...plain, force: true };

let it: TestNode;
let volumeId: string;
let sandboxId: string;
beforeAll(async () => {
  it = await startTestNode();
  volumeId = newUuid();
  await volumes().create(volumeId, sizeMiB);
  ({ sandboxId } = await it.node.protocol.create(it.request({ volumes: [{ volumeId, path: '/mnt/shared' }] })));
}, 300_000);
afterAll(() => it.dispose());

const volumes = () => it.node.protocol.volumes;
const inside = async (command: string, user?: string) => {
  const { exitCode, stdout, stderr } = await runInSandbox(it.node.protocol, sandboxId, command, user);
  if (exitCode !== 0) throw new Error(`${command}: ${stderr}`);
  return stdout;
};

async function write(path: string, content: string, entry = forced) {
  const { writeId, descriptor } = await volumes().openWrite(volumeId, path, entry);
  writeSync(descriptor, content);
  closeSync(descriptor);
  return volumes().keepWrite(writeId, Buffer.byteLength(content));
}

async function read(path: string): Promise<string> {
  const { sizeBytes, descriptor } = await volumes().openRead(volumeId, path);
  const bytes = Buffer.alloc(sizeBytes);
  readSync(descriptor, bytes);
  closeSync(descriptor);
  return bytes.toString();
}

/** The node through a separate connection, as another api has it. */
async function anotherApi() {
  const path = join(it.dataDir, `${newUuid()}.sock`);
  const to = { path, caller: 'api' as const, uid: process.getuid?.() ?? 0 };
  const listening = serveNode({ node: it.node.protocol }, to, silentLog);
  const { node, close } = nodeAt(path);
  return { volumes: node.volumes, close: () => (close(), listening.stop()) };
}

const code = (error: Promise<unknown>) =>
  error.then(
    () => 'fine',
    (problem: { code: string }) => problem.code,
  );

test('files go in and out with the owner and the permissions that were asked for', async () => {
  expect(await write('/a/b/file', 'hello', { uid: 1000, gid: 1001, mode: 0o640, force: true })).toMatchObject({
    name: 'file',
    path: '/a/b/file',
    type: 'file',
    sizeBytes: 5,
    mode: 416,
    uid: 1e3,
    gid: 1001,
  });
  expect(
    await inside('stat -c "%u %g %a" /mnt/shared/a/b/file /mnt/shared/a /mnt/shared; cat /mnt/shared/a/b/file'),
  ).toBe('1000 1001 640\n1000 1001 777\n9090 9090 777\nhello');
  expect(await read('a/b/file')).toBe('hello');
  expect(await volumes().changeEntry(volumeId, '/a/b/file', { uid: 7, mode: 0o4755 })).toMatchObject({
    uid: 7,
    gid: 1001,
    mode: 0o4755,
  });
  expect(
    (await inside('id -u; touch /mnt/shared/of-user; stat -c %u /mnt/shared/of-user', 'user')).split('\n').slice(0, 2),
  ).toEqual(['1000', '1000']);
  expect(await volumes().stat(volumeId, '/of-user')).toMatchObject({ uid: 1000, type: 'file' });
});

test('what is there is replaced only where that is asked for', async () => {
  await write('/taken', 'first');
  expect(await code(write('/taken', 'second', plain))).toBe('conflict');
  expect(await code(write('/none/file', 'x', plain))).toBe('not_found');
  expect(await code(write('/taken/below', 'x', forced))).toBe('invalid');
  expect(await code(write('/', 'x', forced))).toBe('conflict');
  expect(await code(volumes().makeDirectory(volumeId, '/taken', plain))).toBe('conflict');
  expect(await code(volumes().makeDirectory(volumeId, '/taken/below', forced))).toBe('invalid');
  expect(await code(volumes().makeDirectory(volumeId, '/none/below', plain))).toBe('not_found');
  expect(await volumes().makeDirectory(volumeId, '/made', { ...plain, mode: 0o701 })).toMatchObject({
    type: 'directory',
    mode: 0o701,
    uid: 9090,
  });
  expect(await code(volumes().makeDirectory(volumeId, '/made', plain))).toBe('conflict');
  expect(await volumes().makeDirectory(volumeId, '/made', forced)).toMatchObject({ mode: 0o701 });
  expect(await code(write('/made', 'x', forced))).toBe('conflict');
  await write('/taken', 'third');
  expect(await read('/taken')).toBe('third');
});

test('an upload that is given up leaves what was there', async () => {
  await write('/kept', 'before');
  const { writeId, descriptor } = await volumes().openWrite(volumeId, '/kept', forced);
  writeSync(descriptor, 'half of');
  expect(await read('/kept')).toBe('before');
  await volumes().dropWrite(writeId);
  // A process that goes on writing writes to a file that nobody sees, and never to what is opened meanwhile.
  const others = await volumes().openRead(volumeId, '/kept');
  writeSync(descriptor, 'more');
  expect(fstatSync(descriptor)).toMatchObject({ nlink: 0, size: 'half ofmore'.length });
  for (const fd of [descriptor, others.descriptor]) closeSync(fd);
  expect(await read('/kept')).toBe('before');
  expect(await code(volumes().keepWrite(writeId, 0))).toBe('unavailable');
  expect(await code(volumes().dropWrite(writeId))).toBe('not_found');
});

test('what an api that was killed was uploading leaves the machine with its connection, and nothing of another’s', async () => {
  const doomed = newUuid();
  await volumes().create(doomed, sizeMiB);
  await write('/kept', 'before');
  const [lost, other] = [await anotherApi(), await anotherApi()];
  const uploads = await Promise.all([
    lost.volumes.openWrite(doomed, '/file', forced),
    lost.volumes.openWrite(volumeId, '/kept', forced),
    other.volumes.openWrite(volumeId, '/other', forced),
  ]);
  for (const { descriptor } of uploads) writeSync(descriptor, 'half of');
  await volumes().remove(doomed);
  const loops = () => holdingsOf(it.dataDir).loopDevices.filter(file => file.includes(doomed));
  expect(loops()).toHaveLength(1);
  lost.close();
  // As the kernel does for a killed process.
  for (const { descriptor } of uploads) closeSync(descriptor);
  await waitFor('the disk of the volume that was deleted to go', () => loops().length === 0);
  const [, cutOff, whole] = uploads.map(({ writeId }) => writeId);
  // A process that lives and has reconnected is told to begin again.
  await expect(volumes().keepWrite(cutOff ?? '', 7)).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('send it again'),
  });
  expect(await read('/kept')).toBe('before');
  await other.volumes.keepWrite(whole ?? '', 7);
  expect(await read('/other')).toBe('half of');
  other.close();
});

/** Where a volume is mounted, as every process sees it; undefined if it is not mounted. */
function placeOf(volume: string): string | undefined {
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      const [, point] =
        new RegExp(` (\\S+/volume-${volume}) `).exec(readFileSync(`/proc/${pid}/mountinfo`, 'utf8')) ?? [];
      if (point !== undefined) return `/proc/${pid}/root${point}`;
    } catch {
      // It has ended.
    }
  }
  return undefined;
}

test('what a crash left of an upload is gone when the volume is mounted again', async () => {
  const left = newUuid();
  await volumes().create(left, 64);
  await volumes().makeDirectory(left, '/made', plain);
  writeFileSync(join(placeOf(left) ?? '', 'some.upload'), 'half of');
  await waitFor('the volume that nobody uses to be unmounted', () => placeOf(left) === undefined);
  await volumes().stat(left, '/made');
  expect(readdirSync(placeOf(left) ?? '')).not.toContain('some.upload');
  await volumes().remove(left);
});

test('a directory is listed in order, level by level', async () => {
  await inside(
    'cd /mnt/shared; mkdir -p tree/b/c tree/a; touch tree/b/c/deep tree/a/1 tree/z; ln -s a tree/link; mkfifo tree/pipe',
  );
  const names = async (depth: number) =>
    (await volumes().listDirectory(volumeId, '/tree', depth)).map(({ path }) => path.slice('/tree/'.length));
  expect(await names(1)).toEqual(['a', 'b', 'link', 'pipe', 'z']);
  expect(await names(3)).toEqual(['a', 'a/1', 'b', 'b/c', 'b/c/deep', 'link', 'pipe', 'z']);
  expect(await volumes().stat(volumeId, '/tree/link')).toMatchObject({ type: 'symlink', target: 'a' });
  expect(await volumes().stat(volumeId, '/tree/pipe')).toMatchObject({ type: 'unknown' });
  expect((await volumes().listDirectory(volumeId, '/tree/link', 1)).map(({ path }) => path)).toEqual(['/tree/link/1']);
  expect(await volumes().stat(volumeId, '/')).toMatchObject({ name: '/', path: '/', type: 'directory' });
  expect(await code(volumes().listDirectory(volumeId, '/tree/z', 1))).toBe('invalid');
});

test('no link leads out of the volume, and no pipe makes anybody wait', async () => {
  await inside(
    'cd /mnt/shared; ln -s /etc out; ln -s ../../../../etc up; ln -s /etc/hostname file-out; ln -s loop loop; ln -s / top; mkfifo pipe; ln -s a/b inner',
  );
  for (const path of [
    'out/passwd',
    'up/passwd',
    'file-out',
    'loop',
    'top/etc/passwd',
    '../../../etc/passwd',
    '/out/../../etc/passwd',
  ]) {
    expect([path, await code(read(path))]).toEqual([path, 'not_found']);
    expect([path, await code(volumes().changeEntry(volumeId, path, { mode: 0o777 }))]).toEqual([path, 'not_found']);
  }
  for (const path of ['out/new', 'up/new', 'top/new', 'loop/new']) {
    expect([path, await code(write(path, 'x'))]).toEqual([path, 'not_found']);
    expect([path, await code(volumes().makeDirectory(volumeId, path, forced))]).toEqual([path, 'not_found']);
    expect([path, await code(volumes().removeEntry(volumeId, path))]).toEqual([path, 'not_found']);
    expect([path, await code(volumes().listDirectory(volumeId, path, 1))]).toEqual([path, 'not_found']);
  }
  expect(await code(read('pipe'))).toBe('invalid');
  expect(await read('inner/file')).toBe('hello');
  // A replacement of a link takes the link's place, not its target's.
  await write('file-out', 'inside');
  expect(await inside('cat /mnt/shared/file-out')).toBe('inside');
});

test('a lease on a file makes nobody wait', async () => {
  const holder =
    "import fcntl, os, signal, time; signal.signal(signal.SIGIO, signal.SIG_IGN); fd = os.open('/mnt/shared/leased', os.O_RDWR | os.O_CREAT); fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK); open('/mnt/shared/has-lease', 'w'); time.sleep(600)";
  await inside(
    `setsid python3 -c "${holder}" </dev/null >/tmp/holder 2>&1 & echo $! >/tmp/holder.pid; until test -e /mnt/shared/has-lease; do kill -0 $! || { cat /tmp/holder; exit 1; }; sleep 0.05; done`,
  );
  expect(await code(read('/leased'))).toBe('unavailable');
  await inside('pid=$(cat /tmp/holder.pid); kill -9 $pid; while kill -0 $pid 2>/dev/null; do sleep 0.05; done');
  expect(await read('/leased')).toBe('');
});

test('trees go with all that is in them, links themselves', async () => {
  await inside('cd /mnt/shared; mkdir -p big/x/y; touch big/x/y/z; ln -s /etc big/etc; ln -s ../taken big/keep');
  await volumes().removeEntry(volumeId, '/big');
  expect(await code(volumes().stat(volumeId, '/big'))).toBe('not_found');
  expect(await read('/taken')).toBe('third');
  expect(await code(volumes().removeEntry(volumeId, '/big'))).toBe('not_found');
  expect(await code(volumes().removeEntry(volumeId, '/'))).toBe('invalid');
});

test('the size is a limit to sandboxes and clients alike', async () => {
  const { writeId, descriptor } = await volumes().openWrite(volumeId, '/huge', plain);
  const block = Buffer.alloc(1 << 20, 1);
  expect(() => {
    for (let written = 0; written < sizeMiB + 1; written++) writeSync(descriptor, block);
  }).toThrow(/ENOSPC/);
  closeSync(descriptor);
  await volumes().dropWrite(writeId);
  const { stderr } = await runInSandbox(
    it.node.protocol,
    sandboxId,
    'dd if=/dev/zero of=/mnt/shared/fill bs=1M count=40',
  );
  expect(stderr).toContain('No space left on device');
  expect(Number(await inside('df -m --output=size /mnt/shared | tail -1'))).toBeLessThanOrEqual(sizeMiB);
  await volumes().removeEntry(volumeId, '/fill');
});

test('a link that changes all the time never leads a client out', async () => {
  const racing = inside(
    'cd /mnt/shared; mkdir -p real; echo ours > real/passwd; end=$(($(date +%s)+3)); while [ $(date +%s) -lt $end ]; do rm -rf swap; ln -sfn /etc swap; rm swap; mkdir swap; echo ours > swap/passwd; rm -r swap; ln -sfn real swap; rm swap; done; true',
  ); // clients make directories in its place, so that steps fail
  const seen = new Map<string, number>();
  const count = (word: string) => seen.set(word, (seen.get(word) ?? 0) + 1);
  for (let over = false; !over; over = await Promise.race([racing.then(() => true), Bun.sleep(0).then(() => false)])) {
    await read('swap/passwd').then(
      text => count(text === '' || text === 'ours\n' ? 'ours' : `stolen ${text}`),
      error => count((error as { code: string }).code),
    );
    await volumes()
      .changeEntry(volumeId, 'swap', { mode: 0o777 })
      .catch(() => {});
    await volumes()
      .removeEntry(volumeId, 'swap/passwd')
      .catch(() => {});
    await write('swap/new', 'x').catch(() => {});
  }
  expect([...seen.keys()].filter(word => word.startsWith('stolen'))).toEqual([]);
  expect(seen.get('ours')).toBeGreaterThan(0);
  expect(await Bun.file('/etc/new').exists()).toBe(false);
}, 30_000);

test('a volume that a sandbox has is not deleted; afterwards nothing of it is left', async () => {
  const here = async () => (await volumes().list()).map((volume: NodeVolume) => volume.volumeId);
  expect(await code(volumes().remove(volumeId))).toBe('conflict');
  expect(await here()).toEqual([volumeId]);
  await Promise.all((await it.node.protocol.list()).map(sandbox => it.node.protocol.kill(sandbox)));
  await volumes().remove(volumeId);
  expect(await here()).toEqual([]);
  expect(await code(volumes().stat(volumeId, '/'))).toBe('not_found');
  await volumes().remove(volumeId);
});
