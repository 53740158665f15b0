import { expect, test } from 'bun:test';
import { parseEvents } from './server-sent.ts';

test('messages are read however they are cut, and comments are skipped', async () => {
  const text = 'event: ready\nid: 4\ndata: {"after":4}\n\n:\n\nid: 5\ndata: {"ü":"x: y"}\n\n';
  for (const size of [1, 3, 1000]) {
    const bytes = new TextEncoder().encode(text);
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.slice(i * size, (i + 1) * size),
    );
    expect(await Array.fromAsync(parseEvents(streamOf(chunks)))).toEqual([
      { event: 'ready', id: '4', data: '{"after":4}' },
      { event: 'message', id: '5', data: '{"ü":"x: y"}' },
    ]);
  }
});

test('empty blocks delay nothing', async () => {
  const bytes = new TextEncoder().encode('\n\ndata: 1\n\n\n\ndata: 2\n\n');
  expect((await Array.fromAsync(parseEvents(streamOf([bytes])))).map(({ data }) => data)).toEqual(['1', '2']);
  expect(await Array.fromAsync(parseEvents(null))).toEqual([]);
});

function streamOf(chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}
