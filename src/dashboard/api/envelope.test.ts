import { expect, test } from 'bun:test';
import { endFlag, joinEnvelope, readEnvelopes } from './envelope.ts';

test('envelopes are read however they are cut', async () => {
  const end = joinEnvelope('{}');
  end[0] = endFlag;
  const bytes = Buffer.concat([joinEnvelope('{"a":"ü"}'), joinEnvelope('[1]'), end]);
  for (const size of [1, 4, 7, 1000]) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      Uint8Array.from(bytes.subarray(i * size, (i + 1) * size)),
    );
    expect(await Array.fromAsync(readEnvelopes(streamOf(chunks)))).toEqual([
      { flag: 0, json: { a: 'ü' } },
      { flag: 0, json: [1] },
      { flag: endFlag, json: {} },
    ]);
  }
});

function streamOf(chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}
