import { expect, test } from 'bun:test';
import { followed } from './followed.ts';

test('a stream continues after its last event over connections that end, and ends where it says so', async () => {
  const asked: (string | undefined)[] = [];
  const bodies = [
    'event: ready\nid: 4\ndata: {}\n\nid: 5\ndata: a\n\nid: 6\nda',
    'id: 6\ndata: b\n\nevent: end\ndata: {}\n\n',
  ];
  const open = (after: string | undefined) => {
    asked.push(after);
    return Promise.resolve(new Response(bodies.shift()));
  };
  const stop = new AbortController();
  const seen = await Array.fromAsync(followed({ open, signal: stop.signal, onFailure: () => {} }));
  expect(seen.map(({ event, data }) => [event, data])).toEqual([
    ['ready', '{}'],
    ['message', 'a'],
    ['message', 'b'],
    ['end', '{}'],
  ]);
  expect(asked).toEqual([undefined, '5']);
});

test('a failure that the reader throws on ends it', async () => {
  const open = () => Promise.reject(new Error('refused'));
  const onFailure = (error: unknown) => {
    throw error;
  };
  const { signal } = new AbortController();
  expect(Array.fromAsync(followed({ open, signal, onFailure }))).rejects.toThrow('refused');
});
