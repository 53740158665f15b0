import { expect, test } from 'bun:test';
import { AtollError } from '../../base/error.ts';
import type { BuilderQuestion, BuilderReply } from '../../protocol/builder.ts';
import { converse, createReaders } from './conversation.ts';

const readerFor = createReaders();
const resolve = (host: string, isSecure = true) => ({ resolve: { host, isSecure } });
const digest = `sha256:${'ab'.repeat(32)}`;
const image = { digest, env: {}, layers: [] };

/** Runs a conversation with a builder that says these pieces. `replies`: what it was replied. */
async function hear(
  pieces: (string | Uint8Array)[],
  options: { reply?(question: BuilderQuestion): Promise<string[]>; saidBytesMax?: number } = {},
) {
  const replies: BuilderReply[] = [];
  const output = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(Buffer.from(piece));
      controller.close();
    },
  });
  const outcome = await converse(output, readerFor('registry-image'), {
    kind: 'registry-image',
    saidBytesMax: options.saidBytesMax ?? 10_000,
    reply: options.reply,
    send(reply) {
      replies.push(reply);
      return Promise.resolve();
    },
  }).catch((error: unknown) => error);
  return { outcome, replies };
}
const line = (value: unknown) => `${JSON.stringify(value)}\n`;

test('the last line is the answer, however it is cut into pieces', async () => {
  const answer = { ok: { image } };
  const text = Buffer.from(line({ error: { code: 'internal', message: 'é' } }) + line(answer));
  expect((await hear([text])).outcome).toEqual(answer);
  expect((await hear([...text].map(byte => Uint8Array.of(byte)))).outcome).toEqual(answer);
  const first = text.subarray(0, text.indexOf(10) + 1);
  expect((await hear([first])).outcome).toEqual({ error: { code: 'internal', message: 'é' } });
});

test('one that ends without a whole line has no answer', async () => {
  expect((await hear([])).outcome).toBeUndefined();
  expect((await hear([line({ ok: { image } }).trimEnd()])).outcome).toBeUndefined();
});

test('questions are answered in order, with addresses or with the reason why there are none', async () => {
  const failures: Record<string, Error> = {
    'b.test': new AtollError('forbidden', 'not there'),
    'c.test': new Error('of another kind'),
  };
  const asked: BuilderQuestion[] = [];
  const reply = (question: BuilderQuestion) => {
    asked.push(question);
    const failure = failures[question.resolve.host];
    return failure ? Promise.reject(failure) : Promise.resolve(['192.0.2.1']);
  };
  const hosts = ['a.test', 'b.test', 'c.test'];
  const questions = hosts.map(host => line(resolve(host)));
  const { outcome, replies } = await hear([...questions, line({ ok: { image } })], { reply });
  expect(outcome).toEqual({ ok: { image } });
  expect(asked.map(question => question.resolve.host)).toEqual(hosts);
  expect(replies).toEqual([
    { addresses: ['192.0.2.1'] },
    { error: { code: 'forbidden', message: 'not there' } },
    { error: { code: 'internal', message: 'of another kind' } },
  ]);
});

test('a job that has none to ask may not, and no job more than two hundred', async () => {
  const refused = { code: 'invalid', message: 'the reader asks for more than it may' };
  expect((await hear([line(resolve('a.test'))])).outcome).toMatchObject(refused);
  const questions = (count: number) => Array.from({ length: count }, (_, index) => line(resolve(`h${index}.test`)));
  const reply = () => Promise.resolve([]);
  expect((await hear([...questions(200), line({ ok: { image } })], { reply })).outcome).toEqual({ ok: { image } });
  const { outcome, replies } = await hear([...questions(201), line({ ok: { image } })], { reply });
  expect(outcome).toMatchObject(refused);
  expect(replies).toHaveLength(200);
});

test('an answer that does not fit this kind of job is refused', async () => {
  expect((await hear(['not JSON\n'])).outcome).toMatchObject({
    code: 'invalid',
    message: 'the reader (registry-image) has said what is not JSON',
  });
  const message = /^the reader \(registry-image\) has said what is no answer: .* must be /;
  for (const said of [{ ok: { image: { ...image, digest: 'x' } } }, { ok: null }, {}, resolve('x'.repeat(1000))])
    expect((await hear([line(said)], { reply: () => Promise.resolve([]) })).outcome).toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(message) as string,
    });
});

test('all that it says together is bounded', async () => {
  const answer = line({ ok: { image } });
  const saidBytesMax = 2 * answer.length;
  expect((await hear([answer, answer], { saidBytesMax })).outcome).toEqual({ ok: { image } });
  expect((await hear([answer, answer, '\n'], { saidBytesMax })).outcome).toMatchObject({
    code: 'too_large',
    message: `what was read is longer than ${saidBytesMax} bytes`,
  });
});

test('each kind of job has one reader', () => {
  const readers = createReaders();
  expect(readers('look')).toBe(readers('look'));
  expect(readers('look')).not.toBe(readers('dockerfile'));
});
