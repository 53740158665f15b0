import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Layout } from '../../layout.ts';
import { Reservations } from '../../space/reservations.ts';
import type { Volumes } from '../../volumes/volumes.ts';
import { createVolumeCarrier } from './volume-carrier.ts';

let folder = '';
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'atoll-volume-carrier-'))));
afterEach(() => {
  jest.useRealTimers();
  rmSync(folder, { recursive: true });
});

const key = randomBytes(32).toString('base64url');

/** A machine with these volumes. `happened` records what is done with them; those named in `fails` fail. */
function machine(name: string, ...ids: string[]) {
  const happened: string[] = [];
  const fails = new Set<string>();
  const reserved: number[] = [];
  const data = join(folder, name);
  const folderOf = (id: string) => join(data, 'volumes', id);
  for (const id of ids) {
    mkdirSync(folderOf(id), { recursive: true });
    writeFileSync(join(folderOf(id), 'disk.img'), `content of ${id}`);
    writeFileSync(join(folderOf(id), 'facts.json'), 'not carried');
  }
  const does = async (what: string) => {
    await Promise.resolve();
    happened.push(what);
    if (fails.has(what)) throw new Error(`${what} failed`);
  };
  const volumes = {
    states: () => [{ volumeId: 'a' }],
    folderOf,
    seal: (id: string) => does(`seal ${id}`),
    unseal: (id: string) => void happened.push(`unseal ${id}`),
    async copy(id: string, to: string) {
      await does(`copy ${id}`);
      writeFileSync(join(to, 'disk.img'), readFileSync(join(folderOf(id), 'disk.img')));
    },
    arrive: (id: string, from: string) => does(`arrive ${id} ${readFileSync(join(from, 'disk.img'), 'utf8')}`),
  } as unknown as Volumes;
  const reservations = new Reservations();
  const space = {
    reserve(_: string, bytes: number) {
      reserved.push(bytes);
      return reservations.add(bytes);
    },
  };
  const carrier = createVolumeCarrier({ layout: { data } as Layout, volumes, space });
  const copies = () => readdirSync(join(data, 'copies-of-volumes'));
  return { ...carrier, happened, fails, reserved, reservations, copies };
}

/** Reads a volume as it is sent. */
async function sent(from: ReturnType<typeof machine>, fixedId: string): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  for await (const piece of (await from.send(fixedId, key)).bytes) pieces.push(Uint8Array.from(piece));
  return pieces;
}
async function* stream(pieces: Uint8Array[]): AsyncGenerator<Uint8Array> {
  await Promise.resolve();
  yield* pieces;
}

test('a volume is carried in its state when it was fixed, as its image only', async () => {
  for (const how of ['copy', 'seal'] as const) {
    const [from, to] = [machine('from', 'a'), machine('to')];
    const { fixedId, sizeBytes } = await from.fix('a', how);
    await from.requireFixed(fixedId);
    const pieces = await sent(from, fixedId);
    expect(pieces.reduce((sum, piece) => sum + piece.length, 0)).toBe(sizeBytes);
    expect((await from.send(fixedId, key)).sizeBytes).toBe(sizeBytes);
    const arrival = await to.receive('a', key, sizeBytes);
    expect(to.reserved).toEqual([sizeBytes]);
    await arrival.take(stream(pieces));
    await arrival.keep();
    expect(to.happened).toEqual(['arrive a content of a']);
    await from.release(fixedId);
    expect(from.happened).toEqual(how === 'copy' ? ['copy a'] : ['seal a', 'unseal a']);
    expect(from.copies()).toEqual([]);
    await expect(from.send(fixedId, key)).rejects.toMatchObject({ code: 'not_found' });
    await expect(from.requireFixed(fixedId)).rejects.toMatchObject({ code: 'not_found' });
    await from.release(fixedId);
    expect(from.happened.filter(what => what === 'unseal a').length).toBe(how === 'copy' ? 0 : 1);
  }
});

test('a copy has its room while it is made, and is removed if that fails', async () => {
  const it = machine('from', 'a');
  const { fixedId } = await it.fix('a', 'copy');
  expect(it.reserved[0]).toBeGreaterThan('content of a'.length);
  expect(it.reservations.bytes).toBe(0);
  expect(it.copies()).toHaveLength(1);
  await it.release(fixedId);
  it.fails.add('copy a');
  await expect(it.fix('a', 'copy')).rejects.toThrow('copy a failed');
  expect([it.copies(), it.reservations.bytes]).toEqual([[], 0]);
});

test('four leave a machine at a time, those that are being fixed included', async () => {
  const it = machine('from', 'a', 'b', 'c', 'd', 'e');
  it.fails.add('seal e');
  await expect(it.fix('e', 'seal')).rejects.toThrow('seal e failed');
  const fixing = ['a', 'b', 'c', 'd'].map(id => it.fix(id, 'seal'));
  const refused = { code: 'unavailable', retryAfterSeconds: 2 };
  await expect(it.fix('e', 'copy')).rejects.toMatchObject(refused);
  const [first] = await Promise.all(fixing);
  await expect(it.fix('e', 'copy')).rejects.toMatchObject(refused);
  await it.release(first!.fixedId);
  await it.fix('e', 'copy');
});

test('a volume that nobody gives back is released after an hour', async () => {
  jest.useFakeTimers();
  const it = machine('from', 'a');
  const { fixedId } = await it.fix('a', 'seal');
  jest.advanceTimersByTime(60 * 60_000 - 1);
  await it.requireFixed(fixedId);
  jest.advanceTimersByTime(1);
  await expect(it.requireFixed(fixedId)).rejects.toMatchObject({ code: 'not_found' });
  expect(it.happened).toEqual(['seal a', 'unseal a']);
});

test('a volume that arrives is kept under its own ID, and no other', async () => {
  const [from, to] = [machine('from', 'a'), machine('to')];
  const { fixedId, sizeBytes } = await from.fix('a', 'seal');
  const arrival = await to.receive('b', key, sizeBytes);
  await arrival.take(stream(await sent(from, fixedId)));
  await expect(arrival.keep()).rejects.toMatchObject({ code: 'invalid', message: 'what came is another volume' });
  expect(to.happened).toEqual([]);
});

test('leftovers of copies are removed after a crash, and the states are those of the volumes', async () => {
  const copies = join(folder, 'from', 'copies-of-volumes', 'left');
  mkdirSync(copies, { recursive: true });
  const it = machine('from', 'a');
  expect(existsSync(copies)).toBe(false);
  expect(await it.states()).toMatchObject([{ volumeId: 'a' }]);
});
