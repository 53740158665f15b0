import { readCall } from '../../../src/agent/connect/call.ts';
import { encodeBytesMessage, encodeEnd, encodeMessage, readMessages } from '../../../src/agent/connect/envelope.ts';
import {
  asMessage,
  booleanField,
  bytesField,
  enumField,
  messageField,
  stringField,
  stringMapField,
  stringsField,
  uint32Field,
} from '../../../src/agent/connect/message.ts';
import { readProcessConfig, readTerminalSize } from '../../../src/agent/process/config.ts';
import { resultOrCode, valueOrCode } from '../engine/errors.ts';
import { cutIntoPieces, streamOf } from '../engine/pieces.ts';
import { agree, holds, type Target } from '../engine/target.ts';

const messageBytesMax = 1 << 16;

async function messages(pieces: readonly Uint8Array[]): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const message of readMessages(streamOf(pieces), messageBytesMax)) found.push(message);
  return found;
}

const read = (pieces: readonly Uint8Array[]) =>
  resultOrCode(() => messages(pieces), ['invalid', 'too_large', 'unimplemented']);

export const connectEnvelopes: Target = {
  name: 'connect-envelopes',
  corpus: [
    encodeMessage({ process: { cmd: 'ls' } }),
    Buffer.concat([encodeMessage({ a: 1 }), encodeMessage([]), encodeEnd()]),
    encodeBytesMessage('{"a":"', Buffer.from('bytes'), '"}'),
    Buffer.of(1, 0, 0, 0, 0),
    Buffer.of(0, 0, 1, 0, 1),
  ],
  dictionary: [
    Buffer.of(0, 0, 0, 0, 0),
    Buffer.of(0, 0, 0, 0, 2),
    '{}',
    'null',
    '"',
    '[',
    '\ufeff{}',
    '\\ud800',
    Buffer.of(2, 0, 0, 0, 2),
  ],
  generate: random =>
    Buffer.concat(
      Array.from({ length: random.below(6) }, () =>
        encodeMessage(random.pick<unknown>([{}, { data: random.bytes(9).toString('base64') }, null, [1], 'é', 1e308])),
      ),
    ),
  pumps: [
    { prefix: '', unit: '\0\0\0\0\0', suffix: '' },
    { prefix: '', unit: '\0\0\0\0\x02{}', suffix: '' },
    { prefix: '\0\0\0\xff\xff', unit: '[', suffix: '' },
  ],
  work: input => messages([input]),
  async check(input, random) {
    const whole = await read([input]);
    agree(await read(cutIntoPieces(input, random)), whole, 'the messages are the same in pieces');
    if ('code' in whole) return whole.code;
    // The envelope can't carry what JSON can't write: numbers out of range are read as infinite.
    if (whole.value.some(value => Bun.inspect(value).includes('Infinity'))) return 'infinite';
    const again = await messages([Buffer.concat(whole.value.map(encodeMessage))]);
    agree(again, whole.value, 'what is written is read as the same');
    return `${Math.min(whole.value.length, 3)} messages`;
  },
};

const readers: Record<string, (message: never, name: string) => unknown> = {
  stringField,
  booleanField,
  uint32Field,
  messageField,
  stringsField,
  stringMapField,
  bytesField,
  enumField,
};

export const connectMessages: Target = {
  name: 'connect-messages',
  corpus: [
    '{"process":{"cmd":"/bin/ls","args":["-l"],"envs":{"A":"b"},"cwd":"/"},"pty":{"size":{"cols":80,"rows":"24"}}}',
    '{"userName":"a","user_name":"b","data":"aGk="}',
    '{"envs":{"__proto__":"a","constructor":"b"}}',
    '[]',
    'null',
  ],
  dictionary: [
    '"__proto__":',
    '"cmd":',
    '"envs":',
    '"args":',
    '"size":',
    '"cols":',
    '\\u0000',
    '4294967296',
    '-0',
    '1e3',
    'true',
    '"snake_case"',
    '{}',
    '[]',
  ],
  check(input) {
    let value: unknown;
    try {
      value = JSON.parse(input.toString());
    } catch {
      return 'no JSON';
    }
    const message = valueOrCode(() => asMessage(value), ['invalid']);
    if ('code' in message) return message.code;
    for (const name of ['process', 'userName', 'data', 'envs', 'args', '__proto__', 'constructor', 'toString']) {
      for (const reader of Object.values(readers)) valueOrCode(() => reader(message.value as never, name), ['invalid']);
    }
    const config = valueOrCode(() => readProcessConfig(value && messageField(message.value, 'process')), ['invalid']);
    const size = valueOrCode(() => readTerminalSize(messageField(message.value, 'pty') ?? {}), ['invalid']);
    if ('value' in size)
      holds(
        [size.value.cols, size.value.rows].every(side => Number.isInteger(side) && side > 0 && side <= 0xffff),
        'a terminal has a size that the kernel takes',
      );
    if ('code' in config) return config.code;
    const { cmd, args, envs } = config.value;
    holds(
      [cmd, ...args, ...Object.keys(envs), ...Object.values(envs)].every(
        text => typeof text === 'string' && !text.includes('\0'),
      ),
      'nothing of a command holds a zero byte',
    );
    return `accepted ${Object.keys(envs).length > 0}`;
  },
};

export const connectHeaders: Target = {
  name: 'connect-headers',
  corpus: [
    'Basic cm9vdDo=\n1000\n90\nconnect-python',
    'basic   dXNlcjpwYXNz  \n0\n\n',
    'Bearer x\n99999999999999999999\n-1\n',
  ],
  dictionary: ['Basic ', 'basic', '=', 'cm9vdDo=', '\n', '2147483648'],
  pumps: [
    { prefix: 'basic ', unit: ' ', suffix: '!\n\n\n' },
    { prefix: 'basic ', unit: 'a', suffix: ' !\n\n\n' },
    { prefix: 'basic ', unit: 'a ', suffix: '' },
    { prefix: 'x\n', unit: '1', suffix: 'x\n' },
  ],
  check(input) {
    const [authorization = '', timeout = '', keepalive = '', agent = ''] = input
      .toString('latin1')
      .replace(/[\0\r]/g, '')
      .split('\n');
    const headers = new Headers();
    for (const [name, text] of [
      ['authorization', authorization],
      ['connect-timeout-ms', timeout],
      ['keepalive-ping-interval', keepalive],
      ['user-agent', agent],
    ] as const)
      headers.set(name, text);
    const call = valueOrCode(() => readCall(headers), ['invalid']);
    if ('code' in call) return call.code;
    const { timeoutMs, keepaliveMs, username } = call.value;
    holds(timeoutMs === undefined || (timeoutMs > 0 && timeoutMs < 2 ** 31), 'a deadline fits a timer');
    holds(keepaliveMs > 0 && keepaliveMs < 2 ** 31, 'a pause between signs of life fits a timer');
    return `accepted ${username === '' ? 'nobody' : 'somebody'} ${timeoutMs !== undefined}`;
  },
};
