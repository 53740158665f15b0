import { expect, test } from 'bun:test';
import { readBounded } from './bounded-body.ts';

const url = 'http://localhost/';
const chunked = (...parts: string[]) =>
  new Request(url, {
    method: 'POST',
    body: new ReadableStream<Uint8Array>({
      start(controller) {
        for (const part of parts) controller.enqueue(Buffer.from(part));
        controller.close();
      },
    }),
  });
const announced = (text: string) =>
  new Request(url, { method: 'POST', body: text, headers: { 'content-length': String(text.length) } });

test('a body of the longest length is read, with and without an announced length', async () => {
  for (const request of [chunked('12', '345'), chunked('12345'), announced('12345')])
    expect(Buffer.from(await readBounded(request, 5)).toString()).toBe('12345');
  for (const request of [chunked(), announced(''), new Request(url)])
    expect(await readBounded(request, 0)).toHaveLength(0);
});

test('a longer one is refused', async () => {
  for (const request of [chunked('12', '345'), chunked('12345'), announced('12345')])
    await expect(readBounded(request, 4)).rejects.toMatchObject({
      code: 'too_large',
      message: 'the body is longer than 4 bytes',
    });
});

test('one without end is read no further than its bound', async () => {
  let given = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      given++;
      controller.enqueue(new Uint8Array(10));
    },
  });
  await expect(readBounded(new Request(url, { method: 'POST', body }), 100)).rejects.toMatchObject({
    code: 'too_large',
  });
  expect(given).toBeLessThan(20);
});
