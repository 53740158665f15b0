import { expect, test } from 'bun:test';
import { boundedBytes, boundedParts, boundedText } from './bounded.ts';

test('an answer is read as far as its bound, and no further', async () => {
  let [pulled, isCancelled] = [0, false];
  const endless = new ReadableStream({
    pull(controller) {
      pulled++;
      controller.enqueue(new Uint8Array(100));
    },
    cancel() {
      isCancelled = true;
    },
  });
  expect(await boundedBytes(new Response(endless), 1_000)).toBe(null);
  expect([pulled < 20, isCancelled]).toEqual([true, true]);
  expect(await boundedText(new Response('all of it'), 9)).toBe('all of it');
  expect(await boundedText(new Response('all of it'), 8)).toBe('');
  expect(await boundedBytes(new Response(null), 8)).toEqual(new Uint8Array());
  // A file may have a gigabyte: only its consumer joins it, once.
  const pieces = new ReadableStream({
    start(controller) {
      for (const text of ['all ', 'of it']) controller.enqueue(new TextEncoder().encode(text));
      controller.close();
    },
  });
  expect((await boundedParts(new Response(pieces), 9))?.map(({ length }) => length)).toEqual([4, 5]);
});
