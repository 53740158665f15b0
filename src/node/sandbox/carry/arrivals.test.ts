import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { sealFrames } from '../../../base/crypto/frames.ts';
import { requireRoom } from '../../../base/disk-room.ts';
import { Reservations } from '../../space/reservations.ts';
import { Arrivals } from './arrivals.ts';

let place = '';
beforeEach(() => (place = mkdtempSync(join(tmpdir(), 'atoll-arrivals-'))));
afterEach(() => rmSync(place, { recursive: true }));

const coming = (sizeBytes: number) => ({ key: randomBytes(32).toString('base64url'), sizeBytes, keep: async () => {} });

/** A disk with this many free bytes, minus those that were promised. */
function diskOf(freeBytes: number) {
  const reservations = new Reservations();
  const reserve = (what: string, bytes: number) => {
    requireRoom(what, { freeBytes: freeBytes - reservations.bytes, reserveBytes: 100, bytes });
    return reservations.add(bytes);
  };
  return { reserve, reservations };
}

test('things that come at the same time are promised no byte twice, and none of the reserve', async () => {
  const disk = diskOf(1_000);
  const arrivals = new Arrivals(place, 'volume', disk);
  const outcomes = await Promise.allSettled([600, 600, 300, 1].map(bytes => arrivals.receive(coming(bytes))));
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected']);
  expect(outcomes[1]).toMatchObject({ reason: { code: 'no_space', detail: 'disk_reserve' } });
  for (const outcome of outcomes) if (outcome.status === 'fulfilled') await outcome.value.drop();
  expect(disk.reservations.bytes).toBe(0);
});

test('no more come at a time than may, however they are asked for', async () => {
  const arrivals = new Arrivals(place, 'draft', diskOf(1_000_000));
  const outcomes = await Promise.allSettled(Array.from({ length: 7 }, () => arrivals.receive(coming(10))));
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(4);
  for (const outcome of outcomes) if (outcome.status === 'fulfilled') await outcome.value.drop();
});

test('room that was promised for something that is no archive is given back', async () => {
  const disk = diskOf(1_000);
  const arrival = await new Arrivals(place, 'snapshot', disk).receive(coming(600));
  const bytes = async function* () {
    yield new Uint8Array(100);
  };
  await expect(arrival.take(bytes())).rejects.toMatchObject({ code: 'invalid' });
  expect(disk.reservations.bytes).toBe(500);
  await arrival.drop();
  expect(disk.reservations.bytes).toBe(0);
});

test('bytes beyond the announced size may take free room, but none of the reserve', async () => {
  const disk = diskOf(10_000);
  const arrivals = new Arrivals(place, 'volume', disk);
  const comes = async (bytes: number) => {
    const it = coming(600);
    const arrival = await arrivals.receive(it);
    const file = { path: 'disk.img', sizeBytes: bytes, mode: 0o600, extents: [[0, bytes]] as [number, number][] };
    const text = Buffer.from(JSON.stringify({ version: 1, record: {}, agent: 'a', files: [file] }));
    const length = Buffer.alloc(4);
    length.writeUInt32BE(text.length);
    const archive = async function* () {
      yield Buffer.concat([length, text]);
      yield Buffer.alloc(bytes);
    };
    return arrival.take(sealFrames(Buffer.from(it.key, 'base64url'), archive())).finally(() => arrival.drop());
  };
  await comes(600);
  await comes(9_900);
  await expect(comes(10_501)).rejects.toMatchObject({ code: 'no_space', detail: 'disk_reserve' });
  expect(disk.reservations.bytes).toBe(0);
});
