import { expect, test } from 'bun:test';
import { join } from 'node:path';

/** The output of the helper when it is started as gzip. */
async function asGzip(argv0: string, option: string, stdin: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const helper = Bun.spawn([join(import.meta.dir, '../../dist/helper'), option], { argv0, stdin, stdout: 'pipe' });
  const written = await new Response(helper.stdout).arrayBuffer();
  expect(await helper.exited).toBe(0);
  return new Uint8Array(written);
}

test('the helper, started as gzip by path or by name, writes what any gzip opens, and compresses nothing', async () => {
  const zeros = new Uint8Array(300_000);
  for (const bytes of [zeros.map((_, index) => index * index), zeros, zeros.subarray(0, 1), zeros.subarray(0, 0)])
    for (const argv0 of ['gzip', '/somewhere/gzip']) {
      const packed = await asGzip(argv0, '', bytes);
      expect(packed.length).toBeGreaterThan(bytes.length);
      expect(Buffer.compare(Bun.gunzipSync(packed), bytes)).toBe(0);
      expect(Buffer.compare(await asGzip(argv0, '-d', packed), bytes)).toBe(0);
    }
});

test('what was compressed by another gzip, or not at all, is opened too', async () => {
  const bytes = new TextEncoder().encode('what was kept\n'.repeat(10_000));
  expect(Buffer.compare(await asGzip('gzip', '-d', Bun.gzipSync(bytes)), bytes)).toBe(0);
  expect(Buffer.compare(await asGzip('gzip', '-d', bytes), bytes)).toBe(0);
});
