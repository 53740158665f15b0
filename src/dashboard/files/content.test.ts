import { expect, test } from 'bun:test';
import { contentOf, hexLines } from './content.ts';
import type { FileStore } from './store.ts';

/** How a file with this content, and this reported length, is shown. */
async function shown(path: string, content: BodyInit, bytes = 1) {
  const store = { stat: async () => ({ changedAt: 'then', bytes }), read: async () => new Response(content) };
  return contentOf(store as unknown as FileStore, path);
}
const fiveMiB = 5 * 1024 ** 2;

test('a file is text, a picture by its name, or bytes', async () => {
  const changedAt = 'then';
  expect(await shown('/a', 'Zoë')).toEqual({ kind: 'text', text: 'Zoë', changedAt });
  // The beginning of the file stays when it is saved.
  expect(await shown('/a', '\u{FEFF}x')).toMatchObject({ text: '\u{FEFF}x' });
  for (const name of ['a.png', 'b.JPEG', 'c.ico']) expect(await shown(name, 'x')).toMatchObject({ kind: 'image' });
  expect(await shown('png', 'x')).toMatchObject({ kind: 'text' });
  for (const bytes of [Uint8Array.of(0xff, 0xfe), Uint8Array.of(65, 0)])
    expect(await shown('/a', bytes)).toEqual({ kind: 'bytes', bytes: 2, head: bytes, changedAt });
  const { head, ...rest } = (await shown('/a', new Uint8Array(5_000))) as { head: Uint8Array };
  expect({ ...rest, shown: head.length }).toMatchObject({ kind: 'bytes', bytes: 5_000, shown: 4_096 });
});

test('a file of more than 5 MiB is not shown, also where its length was told too small', async () => {
  expect(await shown('/a', 'x'.repeat(fiveMiB), fiveMiB)).toMatchObject({ kind: 'text' });
  const large = { kind: 'bytes', head: null, changedAt: 'then' };
  expect(await shown('/a', 'never read', fiveMiB + 1)).toEqual({ ...large, bytes: fiveMiB + 1 } as never);
  expect(await shown('/proc/a', 'x'.repeat(fiveMiB + 1), 0)).toEqual({ ...large, bytes: fiveMiB } as never);
});

test('bytes are lines of sixteen, the last as short as it is', () => {
  const bytes = new TextEncoder().encode('0123456789abcdef<\u0000>');
  expect(hexLines(bytes)).toEqual([
    '00000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef',
    '00000010  3c 00 3e                                         <.>',
  ]);
  expect(hexLines(new Uint8Array())).toEqual([]);
  // Unprintable characters become dots: those below the space, and from DEL on.
  expect(hexLines(Uint8Array.of(31, 32, 126, 127, 200))[0]?.slice(-5)).toBe('. ~..');
});
