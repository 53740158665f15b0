import { createMask, masked } from '../../../src/agent/journal/mask.ts';
import { OutputLines } from '../../../src/agent/process/output-lines.ts';
import { plain, readAgentLine } from '../../../src/node/agent-client/log-line.ts';
import { cutIntoPieces } from '../engine/pieces.ts';
import { agree, holds, type Target } from '../engine/target.ts';

/** How much of a line the journal keeps before masking it. */
const maskedCharactersMax = 4096;

export const logMasks: Target = {
  name: 'log-masks',
  corpus: [
    'curl -H "Authorization: Bearer abc" https://name:password@host/',
    'PASSWORD=hunter2 ./run --token sk-0123456789abcdef -u a:b',
    '-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END',
    '{"api_key": "x", "cookie": \'y\'}',
    'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc',
  ],
  dictionary: [
    'password',
    'token=',
    'authorization:',
    '-----BEGIN ',
    'PRIVATE KEY-----',
    'eyJ',
    'sk-',
    '://',
    ':',
    '@',
    ' -u ',
    '--secret ',
    's3cret-value',
    'x-api-key: ',
  ],
  workBytesMax: maskedCharactersMax,
  pumps: [
    { prefix: '', unit: 'eyJaaaaaaaa.', suffix: '' },
    { prefix: '', unit: 'a://', suffix: '' },
    { prefix: '', unit: '-', suffix: '' },
    { prefix: '', unit: 'token', suffix: '' },
    { prefix: '', unit: '-----BEGIN ', suffix: '' },
    { prefix: '', unit: ' -u a', suffix: '' },
  ],
  check(input) {
    const mask = createMask([{ MY_TOKEN: 's3cret-value', SHORT: 'abc', OTHER_KEY: 's3cret' }]);
    const text = input.toString('utf8').slice(0, maskedCharactersMax);
    const result = mask(text);
    holds(!result.includes('s3cret'), 'known secrets are taken out');
    holds(result.length <= text.length * (masked.length + 1) + 16, 'a masked text is not much longer');
    return result === text ? 'as it was' : 'masked';
  },
};

export const outputLines: Target = {
  name: 'output-lines',
  corpus: ['one\ntwo\r\nthree', '\n\n', `${'x'.repeat(2000)}\n`, '\r\n'],
  dictionary: ['\n', '\r\n', '\xe2\x82'],
  bytesMax: 6000,
  pumps: [
    { prefix: '', unit: '\n', suffix: '' },
    { prefix: '', unit: 'a', suffix: '' },
  ],
  check(input, random) {
    const read = (pieces: readonly Uint8Array[]) => {
      const lines: string[] = [];
      const output = new OutputLines(
        'stdout',
        { isOpen: () => true, spend() {} },
        { line: text => void lines.push(text), dropped() {} },
      );
      for (const piece of pieces) output.take(piece);
      output.end();
      return lines;
    };
    const lines = read([input]);
    agree(read(cutIntoPieces(input, random)), lines, 'the lines are the same in pieces');
    holds(
      lines.every(line => !line.includes('\n') && line.length < 1100),
      'lines are bounded',
    );
    return `${Math.min(lines.length, 3)} lines`;
  },
};

const entry = (fields: object) => JSON.stringify({ n: 1, t: 1, l: 1, logger: 'agent', message: 'm', fields });

export const agentLogLines: Target = {
  name: 'agent-log-lines',
  corpus: [
    entry({ a: 'b' }),
    '{"epoch":"0a-b"}',
    entry({ __proto__: 'x', 'a b': 'c' }),
    '{"n":2,"l":2,"message":"\\u001b[31mred\\u001b]0;title\\u0007"}',
    '[]',
    'null',
  ],
  dictionary: [
    '"n":',
    '"l":',
    '"t":',
    '"fields":',
    '"message":',
    '\\u001b[',
    '\\u001b]',
    '\\u0007',
    '\\ud800',
    '1e999',
    '9007199254740992',
    '-1',
    '"__proto__":',
  ],
  pumps: [
    { prefix: '{"n":1,"l":1,"message":"', unit: '\\u001b', suffix: '"}' },
    { prefix: '{"n":1,"l":1,"message":"', unit: '\\u001b]aaaaaaaa', suffix: '"}' },
    { prefix: '{"n":1,"l":1,"message":"","fields":{"a":""', unit: ',"a":"b"', suffix: '}}' },
  ],
  check(input) {
    const now = 1_700_000_000_000;
    const line = readAgentLine(input.toString(), now);
    if (line === undefined) return 'neither';
    if ('epoch' in line) return 'epoch';
    const { timestampMs, message, fields, logger } = line.entry;
    holds(timestampMs >= 0 && timestampMs <= now && Number.isSafeInteger(timestampMs), 'a time is one that was');
    const texts = [message, ...Object.values(fields)];
    holds(
      texts.every(text => text.length <= 4096 && text.isWellFormed() && !/[\0-\x08\x0b-\x1f\x7f-\x9f]/.test(text)),
      'texts are plain and bounded',
    );
    agree(texts.map(plain), texts, 'what is plain stays as it is');
    holds(
      Object.keys(fields).length <= 12 && ['agent', 'process', 'filesystem'].includes(logger),
      'fields and loggers are known',
    );
    return `entry ${Object.keys(fields).length > 0}`;
  },
};
