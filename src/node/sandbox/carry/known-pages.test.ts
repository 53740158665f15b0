import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'bun:test';
import { KnownPages } from './known-pages.ts';

/** How many descriptors of this process have a file open. */
function opensOf(path: string): number {
  const linkOf = (name: string) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`);
    } catch {
      return ''; // it was that of the listing itself
    }
  };
  return readdirSync('/proc/self/fd').filter(name => linkOf(name) === path).length;
}

test('known files stay open while pages are looked for in them, and not a moment longer', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-known-'));
  const [draft, other, now] = [join(folder, 'draft'), join(folder, 'other'), join(folder, 'now')];
  try {
    const bytes = randomBytes(8 << 20);
    writeFileSync(draft, bytes);
    writeFileSync(now, bytes);
    writeFileSync(other, randomBytes(8 << 20));
    const known = await KnownPages.of([draft]);
    const split = known.split(now);
    known[Symbol.dispose]();
    expect(opensOf(draft)).toBe(1);
    // The next file that is opened gets the number of the closed one.
    using _others = await KnownPages.of([other]);
    expect(await split).toEqual({ copies: [[0, bytes.length, 0, 0]], extents: [] });
    expect(opensOf(draft)).toBe(0);
    known[Symbol.dispose]();
    await expect(known.split(now)).rejects.toMatchObject({ code: 'not_found' });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('files that can not all be read are closed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-known-'));
  const there = join(folder, 'there');
  try {
    writeFileSync(there, randomBytes(4096));
    await expect(KnownPages.of([there, join(folder, 'missing')])).rejects.toThrow('ENOENT');
    expect(opensOf(there)).toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
