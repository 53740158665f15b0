import { expect, test } from 'bun:test';
import { requireRoom } from '../../base/disk-room.ts';
import { createWrites } from './writes.ts';

test('when many uploads come at once, no more begin than may be under way', () => {
  const { admit } = createWrites({ require() {} });
  const places = Array.from({ length: 128 }, admit);
  expect(admit).toThrow('128 files are being written');
  places[0]?.[Symbol.dispose]();
  admit();
});

test('an upload that would take from the disk’s reserve does not begin, and takes no place', () => {
  const disk = { freeBytes: 2 ** 30 };
  const { admit } = createWrites({ require: what => requireRoom(what, { ...disk, reserveBytes: 2 ** 31 }) });
  for (let time = 0; time < 200; time++)
    expect(admit).toThrow("no room on the platform's disk for an upload to a volume: 1024 MiB are free");
  disk.freeBytes = 2 ** 32;
  admit();
});
