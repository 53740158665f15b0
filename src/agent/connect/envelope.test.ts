import { expect, test } from 'bun:test';
import { encodeBytesMessage, encodeEnd, encodeMessage, readMessages } from './envelope.ts';

const endless = 1 << 20;
const streamOf = (...chunks: Uint8Array[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });

/** The messages of a body, and the error if it ends with one. */
async function read(chunks: Uint8Array[], messageBytesMax = endless) {
  const messages: unknown[] = [];
  try {
    for await (const message of readMessages(streamOf(...chunks), messageBytesMax)) messages.push(message);
    return { messages, failure: '' };
  } catch (error) {
    return { messages, failure: (error as { code: string }).code };
  }
}
const head = (flag: number, length: number) => {
  const bytes = Buffer.alloc(5, flag);
  bytes.writeUInt32BE(length, 1);
  return bytes;
};

test('messages are read however they are cut into parts', async () => {
  const messages = [{ a: 1 }, { text: 'é'.repeat(300) }, {}, [1, 2]];
  const bytes = Buffer.concat([...messages.map(encodeMessage), head(0, 0)]);
  const expected = { messages: [...messages, {}], failure: '' };
  expect(await read([bytes])).toEqual(expected);
  for (const size of [1, 2, 4, 5, 6, 7, 600])
    expect(
      await read(
        Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size)),
      ),
    ).toEqual(expected);
  expect(await Array.fromAsync(readMessages(null, endless))).toEqual([]);
});

test('nothing behind the end envelope is read', async () => {
  expect(await read([encodeMessage(1), encodeEnd(), Buffer.from('whatever')])).toEqual({ messages: [1], failure: '' });
});

test('a message that is cut off, compressed or no JSON fails after the whole messages before it', async () => {
  const first = encodeMessage('first');
  for (const [rest, failure] of [
    [encodeMessage('second').subarray(0, -1), 'invalid'],
    [head(0, 5), 'invalid'],
    [head(0, 5).subarray(0, 4), 'invalid'],
    [Buffer.concat([head(0, 1), Buffer.from('{')]), 'invalid'],
    [Buffer.concat([head(1, 2), Buffer.from('{}')]), 'unimplemented'],
  ] as const)
    expect(await read([first, rest])).toEqual({ messages: ['first'], failure });
});

test('a message may be so long, and a longer one is refused by its head', async () => {
  const message = 'x'.repeat(98);
  expect(await read([encodeMessage(message)], 100)).toEqual({ messages: [message], failure: '' });
  expect(await read([encodeMessage(message)], 99)).toEqual({ messages: [], failure: 'too_large' });
  expect(await read([head(0, 0xff_ff_ff_ff)], 99)).toEqual({ messages: [], failure: 'too_large' });
});

test('output goes as base64 between two texts, also a part of a larger buffer', async () => {
  for (const size of [0, 1, 2, 3, 70_000]) {
    const all = Uint8Array.from({ length: size + 10 }, (_, at) => at % 251);
    const envelope = encodeBytesMessage('{"stdout":"', all.subarray(5, 5 + size), '"}');
    const expected = { stdout: Buffer.from(all.subarray(5, 5 + size)).toString('base64') };
    expect(await read([envelope])).toEqual({ messages: [expected], failure: '' });
  }
});

test('the end says why where there is a reason', () => {
  const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('utf8', 5);
  expect([encodeEnd()[0], textOf(encodeEnd())]).toEqual([2, '{}']);
  expect(textOf(encodeEnd({ code: 'canceled', message: 'é' }))).toBe('{"error":{"code":"canceled","message":"é"}}');
});
