import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { newUuid } from '../../src/base/id.ts';
import { runInSandbox } from '../node/support/run-in-sandbox.ts';
import { startTestNode, type TestNode } from '../node/support/test-node.ts';

// The content of volumes on its way to other machines and to a store, with the kernel's real file systems.

let it: TestNode;
beforeAll(async () => {
  it = await startTestNode({});
}, 300_000);
afterAll(() => it.dispose());

const protocol = () => it.node.protocol;
const carrier = () => it.node.volumeCopies;
const create = (volumeId: string) => protocol().create(it.request({ volumes: [{ volumeId, path: '/data' }] }));
const inside = async ({ sandboxId }: { sandboxId: string }, command: string) => {
  const { exitCode, stdout, stderr } = await runInSandbox(protocol(), sandboxId, command, 'root');
  if (exitCode !== 0) throw new Error(`${command}: ${stderr}`);
  return stdout.trim();
};

/** Sends the frozen content to this same node, as another volume's content would arrive. */
async function carry(fixedId: string, volumeId: string, change = (bytes: Uint8Array) => bytes): Promise<number> {
  const key = randomBytes(32).toString('base64url');
  const { sizeBytes, bytes } = await carrier().send(fixedId, key);
  const coming = await carrier().receive(volumeId, key, sizeBytes);
  let sent = 0;
  await coming
    .take(
      (async function* () {
        for await (const piece of bytes) {
          sent += piece.length;
          yield change(piece);
        }
      })(),
    )
    .catch(async (error: unknown) => {
      await coming.drop();
      throw error;
    });
  await coming.keep();
  expect(sent).toBe(sizeBytes);
  return sent;
}

const stateOf = async (volumeId: string) =>
  (await carrier().states()).find(state => state.volumeId === volumeId) ?? { isInSandbox: false, changedAtMs: 0 };

test('a copy of a volume that a sandbox writes to is whole, and the writer goes on', async () => {
  const volumeId = newUuid();
  // A disk of 64 MiB holds 4,096 files, which a fast writer makes before it is stopped.
  await protocol().volumes.create(volumeId, 512);
  const sandbox = await create(volumeId);
  // Each line is a file, and its name in a log that is written after it: in a consistent state, no name precedes its
  // file.
  await inside(
    sandbox,
    '(n=0; while [ ! -e /tmp/stop ]; do n=$((n+1)); echo $n > /data/f$n && echo $n >> /data/log; done) >/dev/null 2>&1 &',
  );
  const lines = async () => Number(await inside(sandbox, 'cat /data/log 2>/dev/null | wc -l'));
  while ((await lines()) < 50);
  const { fixedId } = await carrier().fix(volumeId, 'copy');
  const then = await lines();
  while ((await lines()) < then + 50);
  await inside(sandbox, 'touch /tmp/stop');
  expect(await stateOf(volumeId)).toMatchObject({ isInSandbox: true });
  await protocol().kill(sandbox);
  await protocol().volumes.remove(volumeId);
  // As the machine would get it that takes over the volume.
  await carry(fixedId, volumeId);
  await carrier().release(fixedId);
  const again = await create(volumeId);
  expect(Number(await inside(again, 'wc -l < /data/log'))).toBeWithin(50, then + 1);
  expect(await inside(again, 'while read n; do [ "$(cat /data/f$n)" = $n ] || echo lost $n; done < /data/log')).toBe(
    '',
  );
  await inside(again, 'echo more > /data/more');
  await protocol().kill(again);
  expect(readdirSync(join(it.dataDir, 'node/copies-of-volumes'))).toEqual([]);
}, 120_000);

test('files that come by the API while copies are taken wait for them, and the platform does not', async () => {
  const volumeId = newUuid();
  await protocol().volumes.create(volumeId, 512);
  const { volumes } = protocol();
  const entry = { uid: 0, gid: 0, mode: 0o644, force: false };
  const upload = async (path: string, bytes: Uint8Array) => {
    const { writeId, descriptor } = await volumes.openWrite(volumeId, path, entry);
    try {
      for (let at = 0; at < bytes.length;) at += writeSync(descriptor, bytes, at);
    } finally {
      closeSync(descriptor);
    }
    await volumes.keepWrite(writeId, bytes.length);
  };
  // Content that takes long to copy.
  for (let n = 0; n < 8; n++) await upload(`/large${n}`, randomBytes(16 * 1024 ** 2));
  let copying = true;
  const copies = (async () => {
    for (let n = 0; n < 5; n++) {
      const { fixedId } = await carrier().fix(volumeId, 'copy');
      await carrier().release(fixedId);
    }
    copying = false;
  })();
  let sent = 0;
  // Empty ones: in the kernel, written bytes would wait for the end of a copy, and block the thread that this test runs
  // in.
  while (copying || sent < 200) await upload(`/small${sent++}`, new Uint8Array());
  await copies;
  expect(await volumes.listDirectory(volumeId, '/', 1)).toHaveLength(8 + sent);
  await volumes.remove(volumeId);
}, 120_000);

test('sandboxes get volumes inside of one that is copied, and what removes from it waits', async () => {
  const { volumes } = protocol();
  const [outer, inner] = [newUuid(), newUuid()];
  for (const volumeId of [outer, inner]) await volumes.create(volumeId, 512);
  const filler = await create(outer);
  // Content that takes long to copy.
  await inside(filler, 'head -c 200M /dev/urandom > /data/large && mkdir -p /data/old/a && sync -f /data');
  let copying = true;
  const copies = (async () => {
    while (copying) await carrier().release((await carrier().fix(outer, 'copy')).fixedId);
  })();
  for (let n = 0; n < 10; n++) {
    // Neither of the places exists yet.
    const paths = [
      { volumeId: outer, path: '/data' },
      { volumeId: inner, path: `/data/made${n}/inner` },
    ];
    const sandbox = await protocol().create(it.request({ volumes: paths }));
    await inside(sandbox, `echo ${n} > /data/made${n}/inner/n`);
    await protocol().kill(sandbox);
    if (n > 0) await volumes.removeEntry(outer, `/made${n - 1}`);
  }
  copying = false;
  await copies;
  expect(await inside(filler, 'ls /data/made9')).toBe('inner');
  await protocol().kill(filler);
  expect((await volumes.listDirectory(outer, '/', 1)).map(({ name }) => name).sort()).toEqual([
    'large',
    'made9',
    'old',
  ]);
  for (const volumeId of [outer, inner]) await volumes.remove(volumeId);
}, 300_000);

test('writers of a volume go on after a copy that could not hold them, and where letting them on fails once', async () => {
  const volumeId = newUuid();
  await protocol().volumes.create(volumeId, 64);
  const user = await create(volumeId);
  const programs = mkdtempSync(join(tmpdir(), 'atoll-programs-'));
  const path = process.env['PATH'];
  // The first one holds them and reports that it failed, like a killed one; the second one does nothing.
  writeFileSync(
    join(programs, 'fsfreeze'),
    `#!/bin/sh
case $1 in --freeze) ${Bun.which('fsfreeze')} "$@"; exit 1;; esac
mkdir ${programs}/once 2>&- && exit 1
exec ${Bun.which('fsfreeze')} "$@"
`,
    { mode: 0o755 },
  );
  try {
    process.env['PATH'] = `${programs}:${path}`;
    await expect(carrier().fix(volumeId, 'copy')).rejects.toMatchObject({ code: 'internal' });
    expect(existsSync(join(programs, 'once'))).toBe(true);
  } finally {
    process.env['PATH'] = path;
    rmSync(programs, { recursive: true });
  }
  await inside(user, 'echo more > /data/more');
  await carrier().release((await carrier().fix(volumeId, 'copy')).fixedId);
  await inside(user, 'echo more >> /data/more');
  await protocol().kill(user);
  await protocol().volumes.remove(volumeId);
}, 120_000);

test('nobody uses a volume that is sealed; one that is used is not sealed', async () => {
  const volumeId = newUuid();
  await protocol().volumes.create(volumeId, 64);
  const entry = { uid: 0, gid: 0, mode: 0o755, force: true };
  await protocol().volumes.makeDirectory(volumeId, '/made', entry);
  const user = await create(volumeId);
  await expect(carrier().fix(volumeId, 'seal')).rejects.toMatchObject({ code: 'conflict' });
  await protocol().kill(user);
  const { fixedId } = await carrier().fix(volumeId, 'seal');
  await expect(protocol().volumes.makeDirectory(volumeId, '/late', entry)).rejects.toMatchObject({
    code: 'unavailable',
  });
  await expect(create(volumeId)).rejects.toMatchObject({ code: 'unavailable' });
  await carrier().requireFixed(fixedId);
  await carrier().release(fixedId);
  await expect(carrier().requireFixed(fixedId)).rejects.toMatchObject({ code: 'not_found' });
  expect((await protocol().volumes.listDirectory(volumeId, '/', 1)).map(({ name }) => name)).toEqual(['made']);
  await protocol().volumes.remove(volumeId);
}, 120_000);

test('what was changed on its way is refused, and what was there stays', async () => {
  const volumeId = newUuid();
  await protocol().volumes.create(volumeId, 64);
  await protocol().volumes.makeDirectory(volumeId, '/made', { uid: 0, gid: 0, mode: 0o755, force: true });
  const { fixedId } = await carrier().fix(volumeId, 'copy');
  const flipped = (bytes: Uint8Array) => bytes.map((byte, index) => (index === 100 ? byte ^ 1 : byte));
  await expect(carry(fixedId, volumeId, flipped)).rejects.toMatchObject({ code: 'invalid' });
  // And so is the content of another one.
  const other = newUuid();
  await expect(carry(fixedId, other)).rejects.toMatchObject({ code: 'invalid' });
  await carrier().release(fixedId);
  expect((await protocol().volumes.listDirectory(volumeId, '/', 1)).map(({ name }) => name)).toEqual(['made']);
  expect(await protocol().volumes.list()).not.toContainEqual(expect.objectContaining({ volumeId: other }));
  await protocol().volumes.remove(volumeId);
}, 120_000);

test('reading a volume by the API changes nothing of it; writing, and a sandbox, do', async () => {
  const volumeId = newUuid();
  await protocol().volumes.create(volumeId, 64);
  const first = await stateOf(volumeId);
  expect(first.changedAtMs).toBeGreaterThan(0);
  await protocol().volumes.listDirectory(volumeId, '/', 1);
  expect(await stateOf(volumeId)).toEqual(first);
  await protocol().volumes.makeDirectory(volumeId, '/made', { uid: 0, gid: 0, mode: 0o755, force: true });
  const second = await stateOf(volumeId);
  expect(second.changedAtMs).toBeGreaterThan(first.changedAtMs);
  const sandbox = await create(volumeId);
  await protocol().kill(sandbox);
  const third = await stateOf(volumeId);
  expect(third).toMatchObject({ isInSandbox: false });
  expect(third.changedAtMs).toBeGreaterThan(second.changedAtMs);
  await protocol().volumes.remove(volumeId);
}, 120_000);
