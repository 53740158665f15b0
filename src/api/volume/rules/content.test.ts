import { afterAll, expect, test } from 'bun:test';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readlinkSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import type { VolumeEntry, VolumeProtocol } from '../../../protocol/volume.ts';
import type { VolumeCaller } from '../../credential/caller.ts';
import type { Carried, Nodes } from '../../placement/nodes.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { VolumeRecord } from '../record.ts';
import { contentOf, newEntry, removePath, streamDescriptor, uploadFile } from './content.ts';

const folder = mkdtempSync(join(tmpdir(), 'atoll-volume-content-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const never = new AbortController().signal;

/** A file of this process, and whether the answered descriptor is still open. */
function opened(path: string, flags: string) {
  const descriptor = openSync(path, flags);
  const isOpen = () => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`) === path;
    } catch {
      return false; // no descriptor of this number
    }
  };
  return { path, descriptor, isOpen };
}

const newPath = () => join(folder, newUuid());

test('a token is for one volume, in any spelling of its ID', () => {
  const volume = { volumeId: 'abc', nodeId: 'n', name: 'data', movingTo: null } as VolumeRecord;
  const callerOf = (volume: VolumeRecord): VolumeCaller => ({
    ...{ kind: 'volume', actor: null, team: {} as TeamRecord, volume },
  });
  const volumes = {} as VolumeProtocol;
  const carried = {} as Carried;
  const asked: string[] = [];
  const nodes = { carried, get: (nodeId: string) => (asked.push(nodeId), { volumes }) } as unknown as Nodes;
  expect(contentOf(nodes, callerOf(volume), 'ABC')).toEqual({ volume, content: volumes, carried });
  expect(asked).toEqual(['n']);
  expect(() => contentOf(nodes, callerOf(volume), 'other')).toThrow('The token is not for volume "other"');
  expect(() => contentOf(nodes, callerOf({ ...volume, movingTo: 'm' }), 'abc')).toThrow(
    'Volume "data" goes to another machine now',
  );
});

test('by default a new entry belongs to the usual owner, and replaces nothing', () => {
  expect(newEntry('file', { path: '/f' })).toEqual({ uid: 9090, gid: 9090, mode: 0o666, force: false });
  expect(newEntry('directory', { path: '/d' }).mode).toBe(0o777);
  const said = { uid: 1, gid: 2, mode: 0o600, force: true };
  expect(newEntry('file', { path: '/f', ...said })).toEqual(said);
});

test('a removal belongs to its team, except on a machine that knows no teams', async () => {
  const asked: unknown[][] = [];
  const machine = (code: ConstructorParameters<typeof AtollError>[0], argumentsMax: number) => ({
    async removeEntry(...args: unknown[]) {
      asked.push(args);
      if (args.length > argumentsMax || code !== 'invalid') throw new AtollError(code, 'it is refused');
    },
  });
  const remove = (of: ReturnType<typeof machine>) => removePath(of, { volumeId: 'v', teamId: 't' }, '/path');
  await remove(machine('invalid', 3));
  await remove(machine('invalid', 2));
  await expect(remove(machine('not_found', 3))).rejects.toMatchObject({ code: 'not_found' });
  await expect(remove(machine('invalid', 0))).rejects.toMatchObject({ code: 'invalid' });
  const [ofTeam, ofNobody] = [
    ['v', '/path', 't'],
    ['v', '/path'],
  ];
  expect(asked).toEqual([ofTeam, ofTeam, ofNobody, ofTeam, ofTeam, ofNobody]);
});

/** A volume that takes one upload into a file, and what became of it. */
function taking({ path = newPath(), flags = 'wx', drop = async () => {} } = {}) {
  const file = opened(path, flags);
  const ended: unknown[] = [];
  const content = {
    openWrite: async () => ({ writeId: 'w', descriptor: file.descriptor }),
    async keepWrite(writeId: string, sizeBytes: number) {
      ended.push(['kept', writeId, sizeBytes]);
      return { name: 'f' } as VolumeEntry;
    },
    async dropWrite(writeId: string) {
      ended.push(['dropped', writeId]);
      await drop();
    },
  } as unknown as VolumeProtocol;
  const upload = (
    stream: ReadableStream<Uint8Array> | null,
    {
      length = null,
      signal = never,
      carried,
    }: { length?: number | null; signal?: AbortSignal; carried?: Carried } = {},
  ) => uploadFile({ content, carried }, 'v', '/f', newEntry('file', { path: '/f' }), { stream, length, signal });
  return { ...file, ended, upload };
}

const bodyOf = (...parts: string[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of parts) controller.enqueue(Buffer.from(part));
      controller.close();
    },
  });

test('a complete upload is kept, with or without an announced length', async () => {
  for (const length of [null, 9]) {
    const { upload, path, ended, isOpen } = taking();
    expect(await upload(bodyOf('one ', 'three'), { length })).toMatchObject({ name: 'f' });
    expect(readFileSync(path, 'utf8')).toBe('one three');
    expect([ended, isOpen()]).toEqual([[['kept', 'w', 9]], false]);
  }
  const empty = taking();
  await empty.upload(null);
  expect([empty.ended, empty.isOpen()]).toEqual([[['kept', 'w', 0]], false]);
});

test('an upload that ends too early is dropped', async () => {
  const dropped = [['dropped', 'w']];
  for (const options of [{ length: 10 }, { signal: AbortSignal.abort() }]) {
    const { upload, ended, isOpen } = taking();
    await expect(upload(bodyOf('one three'), options)).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('ended too early'),
    });
    expect([ended, isOpen()]).toEqual([dropped, false]);
  }
  const broken = new ReadableStream<Uint8Array>({
    pull: controller => controller.error(new Error('the connection is gone')),
  });
  const { upload, ended, isOpen } = taking();
  await expect(upload(broken)).rejects.toMatchObject({ code: 'canceled' });
  expect([ended, isOpen()]).toEqual([dropped, false]);
});

test('an upload into a full volume reports that', async () => {
  const { upload, ended } = taking({ path: '/dev/full', flags: 'w' });
  await expect(upload(bodyOf('x'))).rejects.toMatchObject({ code: 'no_space', message: 'The volume is full' });
  expect(ended).toEqual([['dropped', 'w']]);
});

test('another failure of a write is reported as such, even where nothing can be dropped any more', async () => {
  const path = newPath();
  writeFileSync(path, '');
  const drop = async () => {
    throw new AtollError('not_found', 'ended already');
  };
  // The file can't be written.
  const { upload, ended } = taking({ path, flags: 'r', drop });
  await expect(upload(bodyOf('x'))).rejects.toMatchObject({ code: 'EBADF' });
  expect(ended).toEqual([['dropped', 'w']]);
});

test('an upload to another machine goes over its connection, and the machine says where it is full', async () => {
  const parts: string[] = [];
  const carried = {
    async write(descriptor: number, bytes: AsyncIterable<Uint8Array>) {
      for await (const part of bytes) parts.push(`${descriptor} ${Buffer.from(part)}`);
    },
  } as Carried;
  const far = taking();
  await far.upload(bodyOf('a', 'bc'), { carried });
  expect(parts).toEqual([`${far.descriptor} a`, `${far.descriptor} bc`]);
  expect(far.ended).toEqual([['kept', 'w', 3]]);

  const lost: Carried = { ...carried, write: () => Promise.reject(new AtollError('unavailable', 'closed')) };
  await expect(taking().upload(bodyOf('a'), { carried: lost })).rejects.toThrow('closed');
  const full = taking({
    async drop() {
      throw new AtollError('no_space', 'the volume there is full');
    },
  });
  await expect(full.upload(bodyOf('a'), { carried: lost })).rejects.toThrow('the volume there is full');
});

/** A server that answers one file, like the API. */
function serving({ bytes, sizeBytes = bytes, carried }: { bytes: number; sizeBytes?: number; carried?: Carried }) {
  const path = newPath();
  writeFileSync(path, 'begin');
  truncateSync(path, bytes);
  const file = opened(path, 'r');
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    // Bun must not end a connection that hangs.
    idleTimeout: 0,
    fetch: ({ signal }) => new Response(streamDescriptor(file.descriptor, sizeBytes, signal, carried)),
    error: () => new Response(null, { status: 500 }),
  });
  return { ...file, url: server.url, [Symbol.asyncDispose]: () => server.stop(true) };
}

async function untilClosed(isOpen: () => boolean): Promise<void> {
  while (isOpen()) await Bun.sleep(1);
}

const mib = 1 << 20;

test.each([0, 1, mib, mib + 1, 3 * mib + 7])('a file of %i bytes is answered whole, and closed', async bytes => {
  await using served = serving({ bytes });
  const answered = await fetch(served.url).then(response => response.bytes());
  expect(Buffer.compare(answered, readFileSync(served.path))).toBe(0);
  await untilClosed(served.isOpen);
});

test('of a file that has grown since, only the promised part is answered', async () => {
  await using served = serving({ bytes: 2 * mib, sizeBytes: mib + 1 });
  expect(await fetch(served.url).then(response => response.bytes())).toHaveLength(mib + 1);
  await untilClosed(served.isOpen);
});

test('the answer with a file that became shorter breaks off', async () => {
  await using served = serving({ bytes: mib, sizeBytes: 3 * mib });
  await expect(fetch(served.url).then(response => response.bytes())).rejects.toThrow();
  await untilClosed(served.isOpen);
});

test('a client that goes away in the middle ends the reading', async () => {
  await using served = serving({ bytes: 512 * mib });
  const client = new AbortController();
  const response = await fetch(served.url, { signal: client.signal });
  expect((await response.body?.getReader().read())?.value?.length).toBeGreaterThan(0);
  expect(served.isOpen()).toBe(true);
  client.abort();
  await untilClosed(served.isOpen);
});

test('a client that goes before the first byte was asked for leaves nothing open', async () => {
  const path = newPath();
  writeFileSync(path, 'content');
  const { descriptor, isOpen } = opened(path, 'r');
  const client = new AbortController();
  const stream = streamDescriptor(descriptor, 7, client.signal, undefined);
  expect(isOpen()).toBe(true);
  client.abort();
  expect(isOpen()).toBe(false);
  // The number may belong to another file by now: a late reader gets nothing of it.
  const next = opened(path, 'r');
  expect(next.descriptor).toBe(descriptor);
  expect(await new Response(stream).text()).toBe('');
  expect(next.isOpen()).toBe(true);
  expect(await new Response(streamDescriptor(descriptor, 7, never, undefined)).text()).toBe('content');
});

test('a file is read only as fast as the client takes it', async () => {
  await using served = serving({ bytes: 512 * mib });
  const client = new AbortController();
  const response = await fetch(served.url, { signal: client.signal });
  await response.body?.getReader().read();
  const place = () => Number(/pos:\s+(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${served.descriptor}`, 'utf8'))?.[1]);
  for (let before = -1; before !== place(); await Bun.sleep(20)) before = place();
  expect(served.isOpen()).toBe(true);
  expect(place()).toBeLessThan(256 * mib);
  client.abort();
  await untilClosed(served.isOpen);
});

/** A file of another machine, in these parts, and how many of them were read. */
function farFile(parts: Iterable<string>) {
  const read = { parts: 0, isEnded: false };
  const carried = {
    async *read() {
      try {
        for (const part of parts) {
          read.parts++;
          yield Buffer.from(part);
        }
      } finally {
        read.isEnded = true;
      }
    },
  } as unknown as Carried;
  return { read, carried };
}

test('a file of another machine is answered over its connection, and no more of it is read', async () => {
  const { read, carried } = farFile(['one ', 'three and more', ' and more']);
  expect(await new Response(streamDescriptor(-1, 9, never, carried)).text()).toBe('one three');
  expect(read).toEqual({ parts: 2, isEnded: true });
});

test('a client that goes away ends what comes from another machine', async () => {
  function* endless() {
    for (;;) yield 'more of it';
  }
  const { read, carried } = farFile(endless());
  await using served = serving({ bytes: 1, sizeBytes: Number.MAX_SAFE_INTEGER, carried });
  const client = new AbortController();
  const response = await fetch(served.url, { signal: client.signal });
  await response.body?.getReader().read();
  client.abort();
  while (!read.isEnded) await Bun.sleep(1);
  closeSync(served.descriptor);
});
