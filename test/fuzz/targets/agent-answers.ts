import { encodeBytesMessage, encodeEnd, encodeMessage } from '../../../src/agent/connect/envelope.ts';
import { statusOf } from '../../../src/base/error.ts';
import { createResponseReader } from '../../../src/node/agent-client/response.ts';
import { readProcessMessage } from '../../../src/protocol/process-message.ts';
import { createMessageReader } from '../../../src/base/envelopes.ts';
import { valueOrCode } from '../engine/errors.ts';
import { cutIntoPieces } from '../engine/pieces.ts';
import { agree, holds, type Target } from '../engine/target.ts';
import { chunked } from './http-bodies.ts';

/** What the platform reads from an agent's answer; root in a sandbox can write anything there. */
function read(pieces: readonly Uint8Array[]): object {
  let body = '';
  let isOver = false;
  const reader = createResponseReader(piece => {
    body += Buffer.from(piece).toString('latin1');
    return 'more';
  });
  const result = valueOrCode(() => {
    for (const piece of pieces) isOver ||= reader.take(Buffer.from(piece));
  }, ['internal']);
  const outcome = reader.outcome(isOver);
  // Up to the malformed place, pieces and the whole pass on the same. An unfinished head may or may not have been
  // examined: nothing of it was passed on.
  if (outcome.status === undefined) return { failed: false, isOver: false, body, ...outcome, isWhole: false };
  return { failed: 'code' in result, isOver, body, ...outcome };
}

const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';

export const agentAnswers: Target = {
  name: 'agent-answers',
  corpus: [
    `${head}5\r\nhello\r\n0\r\n\r\n`,
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
    'HTTP/1.0 404 Not Found\r\n\r\nno such thing',
    'HTTP/1.1 204 No Content\r\n\r\n',
    'HTTP/1.1 500 x\r\ntransfer-encoding: chunked\r\n\r\n3;a\r\nbad\r\n0\r\n\r\n',
  ],
  dictionary: [
    'HTTP/1.1 ',
    'Content-Length: ',
    'Transfer-Encoding: chunked',
    '\r\n\r\n',
    'ffffffff',
    '999999999999999',
    ';',
    '200',
    '204',
    '0\r\n',
  ],
  generate: random => Buffer.concat([Buffer.from(head), chunked(random)]),
  pumps: [
    { prefix: head, unit: '1\r\na\r\n', suffix: '' },
    { prefix: head, unit: '1', suffix: '' },
    { prefix: '', unit: 'a', suffix: '' },
    { prefix: 'HTTP/1.1 200 OK\r\n', unit: 'Content-Length: 1', suffix: '' },
    { prefix: 'HTTP/1.1 500 x\r\n\r\n', unit: 'a', suffix: '' },
  ],
  work: input => read([...input].map(byte => Uint8Array.of(byte))),
  workBytesMax: 16 << 10,
  check(input, random) {
    const whole = read([input]) as {
      failed: boolean;
      status: number | undefined;
      refusal: string | undefined;
      isOver: boolean;
      body: string;
    };
    agree(read(cutIntoPieces(input, random)), whole, 'an answer is the same in pieces');
    holds(whole.body.length <= input.length && (whole.refusal ?? '').length < 600, 'an answer is bounded');
    return `${whole.failed} ${whole.status === undefined ? 'no' : whole.status === 200 ? '200' : 'another'} ${whole.isOver}`;
  },
};

function messages(pieces: readonly Uint8Array[]): unknown[] {
  const found: unknown[] = [];
  const take = createMessageReader((flags, payload) => void found.push([flags, payload.toString('latin1')]));
  const result = valueOrCode(() => {
    for (const piece of pieces) take(Uint8Array.from(piece));
  }, ['internal']);
  return [...found, 'code' in result];
}

const event = (value: object) => encodeMessage({ event: value });

export const agentMessages: Target = {
  name: 'agent-messages',
  corpus: [
    Buffer.concat([
      event({ start: { pid: 7 } }),
      encodeBytesMessage('{"event":{"data":{"stdout":"', Buffer.from('out'), '"}}}'),
      event({ end: { exitCode: 3, status: 'exit status 3' } }),
      encodeEnd(),
    ]),
    encodeEnd({ code: 'invalid_argument', message: 'no' } as never),
    event({ data: { stdout: { length: 9 } } }),
    encodeMessage(null),
    event({ end: { exitCode: 'x', status: {} } }),
  ],
  dictionary: [
    '{"length":400000000}',
    'null',
    '"stdout":',
    '"error":',
    '"code":',
    '"__proto__"',
    '"constructor"',
    '"toString"',
    Buffer.of(0, 0, 0, 0, 0),
    Buffer.of(2, 0, 0, 0, 2),
    Buffer.of(0, 0xff, 0xff, 0xff, 0xff),
  ],
  generate: random =>
    event({
      [random.pick(['data', 'start', 'end', '__proto__'])]: {
        [random.pick(['stdout', 'stderr', 'exitCode', 'status'])]: random.pick<unknown>([
          'aGk=',
          7,
          null,
          [],
          { length: 400_000_000 },
          { length: -1 },
          true,
        ]),
      },
    }),
  pumps: [
    { prefix: '', unit: '\0\0\0\0\0', suffix: '' },
    { prefix: '', unit: '\0\0\0\0\x02{}', suffix: '' },
    { prefix: '\0\0\x0f\xff\xff', unit: 'a', suffix: '' },
  ],
  work: input => messages([...input].map(byte => Uint8Array.of(byte))),
  runCostMsMax: 500,
  check(input, random) {
    const found = messages([input]);
    agree(messages(cutIntoPieces(input, random)), found, 'the messages are the same in pieces');
    const kinds = new Set<string>();
    for (const message of found) {
      if (!Array.isArray(message)) continue;
      const payload = Buffer.from(String(message[1]), 'latin1');
      const said = valueOrCode(() => readProcessMessage(payload), ['internal']);
      if ('code' in said) continue;
      const { stdout, stderr, end, error } = said.value;
      holds(
        [stdout, stderr].every(bytes => bytes === undefined || bytes.length <= payload.length),
        'output is no longer than what says it',
      );
      holds(
        end === undefined ||
          (Number.isInteger(end.exitCode) && typeof end.status === 'string' && end.status.length <= 500),
        'an end is a number and a text',
      );
      holds(
        error === undefined || (Object.hasOwn(statusOf, error.code) && error.message.length <= 500),
        'an error is one of ours',
      );
      kinds.add(stdout || stderr ? 'output' : end ? 'end' : error ? 'error' : 'other');
    }
    return [...kinds].sort().join() || 'none';
  },
};
