import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { Reservations } from './reservations.ts';
import { countWritten } from './written.ts';

test('room is given back as a file takes it, and all of it at the end', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-written-'));
  try {
    const reservations = new Reservations();
    const file = join(folder, 'file');
    {
      // The file may not exist yet.
      using _room = countWritten(reservations.add(4 << 20), file);
      expect(reservations.bytes).toBe(4 << 20);
      for (const left of [3 << 20, 2 << 20]) {
        appendFileSync(file, Buffer.alloc(1 << 20, 1));
        while (reservations.bytes > left) await Bun.sleep(20);
        expect(reservations.bytes).toBeGreaterThan(left - (1 << 18));
      }
    }
    expect(reservations.bytes).toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
