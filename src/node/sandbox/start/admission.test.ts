import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { Reservations } from '../../space/reservations.ts';
import { createAdmission, leastNeed, needOf } from './admission.ts';

const gib = 1024 ** 3;

function admissionTo(availableBytes: number, freeMemory: () => void = () => {}, totalBytes = 16 * gib) {
  const reservations = new Reservations();
  const available = { bytes: availableBytes };
  const admission = createAdmission({
    space: { reserve: (_, bytes) => reservations.add(bytes) },
    freeMemory: async () => freeMemory(),
    availableBytes: () => available.bytes,
    totalBytes,
  });
  return { ...admission, reservations, available };
}

test('a sandbox that begins with memory needs room for it, in addition to those that begin meanwhile', async () => {
  const { admit, reservations } = admissionTo(3 * gib);
  const need = { memoryBytes: 2 * gib, diskBytes: 100 };
  await expect(admit({ ...need, memoryBytes: 3 * gib })).rejects.toMatchObject({
    code: 'unavailable',
    message:
      'this node is short of memory: 3072 MiB are free, the sandbox begins with 3072 MiB, 512 MiB must stay free',
  });
  expect(reservations.bytes).toBe(0);
  {
    using _first = await admit(need);
    expect(reservations.bytes).toBe(100);
    await expect(admit(need)).rejects.toMatchObject({ code: 'unavailable' });
    using _other = await admit(leastNeed);
  }
  expect(reservations.bytes).toBe(0);
  using _second = await admit(need);
});

test('frozen sandboxes make room first', async () => {
  const { admit, available } = admissionTo(gib, () => (available.bytes = 3 * gib));
  using _room = await admit({ memoryBytes: 2 * gib, diskBytes: 0 });
});

test('the files in a folder tell what a start from it takes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-need-'));
  try {
    for (const name of ['pages-1.img', 'pages-23.img', 'core-1.img'])
      writeFileSync(join(folder, name), 'x'.repeat(100));
    expect(needOf(folder)).toEqual({ memoryBytes: 200, diskBytes: 0 });
    writeFileSync(join(folder, 'disk.img'), 'x'.repeat(4096));
    truncateSync(join(folder, 'disk.img'), gib);
    expect(needOf(folder).diskBytes).toBeWithin(4096, 1 << 20);
    expect(needOf(join(folder, 'none'))).toEqual(leastNeed);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a sandbox that nobody waits for must leave a quarter of the memory, and the usual reserve', async () => {
  const { admit, isRoomy } = admissionTo(3 * gib, undefined, 8 * gib);
  const need = { memoryBytes: gib, diskBytes: 0 };
  expect([isRoomy(leastNeed), isRoomy(need)]).toEqual([true, false]);
  using _promised = await admit(need);
  expect(isRoomy(leastNeed)).toBe(false);
  expect(admissionTo(0.4 * gib, undefined, gib).isRoomy(leastNeed)).toBe(false);
  const { isRoomy: canLook } = createAdmission({
    space: { reserve: (_, bytes) => new Reservations().add(bytes) },
    freeMemory: async () => {},
    availableBytes: () => {
      throw new Error('EMFILE');
    },
  });
  expect(canLook(leastNeed)).toBe(false);
});
