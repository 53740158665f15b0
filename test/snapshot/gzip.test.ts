import { expect, test } from 'bun:test';
import { join } from 'node:path';

test('whoever starts the helper as gzip, by path or by name, gets back what it writes', async () => {
  const bytes = crypto.getRandomValues(new Uint8Array(65_536));
  for (const argv0 of ['gzip', '/somewhere/gzip']) {
    const helper = Bun.spawn([join(import.meta.dir, '../../dist/helper'), '-1'], {
      argv0,
      stdin: bytes,
      stdout: 'pipe',
    });
    expect(await new Response(helper.stdout).bytes()).toEqual(bytes);
    expect(await helper.exited).toBe(0);
  }
});
