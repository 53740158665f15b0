import { expect, test } from 'bun:test';
import {
  addressAnswer,
  answerFor,
  answers,
  emptyAnswer,
  parseQuery,
  readAnswer,
  recordType,
  responseCode,
  writeQuery,
} from './message.ts';

const plain = { id: 7, name: 'a.allowed.test', type: recordType.A, extended: false, wantsSignatures: false };

test('a query survives being written and read', () => {
  for (const query of [
    plain,
    { ...plain, extended: true },
    { ...plain, extended: true, wantsSignatures: true },
    { ...plain, name: '' },
    { ...plain, type: recordType.HTTPS },
  ]) {
    expect(parseQuery(writeQuery(query))).toMatchObject(query);
  }
});

test('a message that is not a single question of the Internet class is ignored', () => {
  const query = writeQuery(plain);
  const changed = (change: (bytes: Buffer) => void) => {
    const bytes = Buffer.from(query);
    change(bytes);
    return parseQuery(bytes);
  };
  expect(changed(bytes => bytes.writeUInt16BE(0x8100, 2))).toBeUndefined(); // an answer
  expect(changed(bytes => bytes.writeUInt16BE(5 << 11, 2))).toBeUndefined(); // an update
  expect(changed(bytes => bytes.writeUInt16BE(2, 4))).toBeUndefined(); // two questions
  expect(changed(bytes => bytes.writeUInt16BE(3, bytes.length - 2))).toBeUndefined(); // another class
  expect(changed(bytes => bytes.writeUInt16BE(0xc00c, 12))).toBeUndefined(); // a name that points to itself
  for (let length = 0; length < query.length; length++) expect(parseQuery(query.subarray(0, length))).toBeUndefined();
});

test('a dot inside of a label does not make two of it', () => {
  const name = Buffer.concat([Buffer.of(9), Buffer.from('x.allowed'), Buffer.of(4), Buffer.from('test'), Buffer.of(0)]);
  const bytes = Buffer.concat([writeQuery(plain).subarray(0, 12), name, Buffer.of(0, 1, 0, 1)]);
  expect(parseQuery(bytes)).toBeUndefined();
});

test('only the answer to the question counts', () => {
  const query = parseQuery(writeQuery(plain))!;
  const answer = addressAnswer(query, ['203.0.113.10', '203.0.113.11'], 60);
  expect(answers(answer, query)).toBe(true);
  expect(answers(answer, { ...query, id: 8 })).toBe(false);
  expect(answers(answer, { ...query, name: 'b.allowed.test' })).toBe(false);
  expect(answers(answer, { ...query, type: 28 })).toBe(false);
  expect(answers(writeQuery(plain), query)).toBe(false);
  expect(readAnswer(answer)).toMatchObject({
    code: responseCode.ok,
    addresses: ['203.0.113.10', '203.0.113.11'],
    ttlSeconds: 60,
  });
});

test('addresses of other names in an answer are not taken, aliases are followed', () => {
  const query = parseQuery(writeQuery(plain))!;
  const name = (text: string) =>
    Buffer.concat([
      ...text.split('.').map(label => Buffer.concat([Buffer.of(label.length), Buffer.from(label)])),
      Buffer.of(0),
    ]);
  const record = (owner: string, type: number, data: Buffer) =>
    Buffer.concat([name(owner), Buffer.of(0, type, 0, 1, 0, 0, 0, 30, data.length >> 8, data.length & 255), data]);
  const records = [
    record('evil.test', 1, Buffer.of(6, 6, 6, 6)),
    record(plain.name, 5, name('b.test')),
    record('b.test', 1, Buffer.of(203, 0, 113, 12)),
    record(plain.name, 1, Buffer.of(6, 6, 6, 7)),
  ];
  const answer = emptyAnswer(query, responseCode.ok);
  answer.writeUInt16BE(records.length, 6);
  expect(readAnswer(Buffer.concat([answer, ...records]))).toMatchObject({
    addresses: ['203.0.113.12'],
    ttlSeconds: 30,
  });
});

test('an answer that is too long says so', () => {
  const query = parseQuery(writeQuery(plain))!;
  const answer = addressAnswer(
    query,
    Array.from({ length: 100 }, () => '203.0.113.10'),
    60,
  );
  const cut = answerFor({ ...query, id: 9 }, answer, 512);
  expect(cut.length).toBeLessThanOrEqual(512);
  expect(readAnswer(cut)).toMatchObject({ truncated: true, addresses: [] });
  expect(cut.readUInt16BE(0)).toBe(9);
  expect(answerFor(query, answer, 4096).length).toBe(answer.length);
});

test('a name with many jumps is invalid', () => {
  const header = Buffer.from('000001000001000000000000', 'hex');
  const message = Buffer.concat([header, Buffer.of(0), Buffer.of(0, 1, 0, 1)]);
  expect(parseQuery(message)).toMatchObject({ name: '' });
  const query = parseQuery(writeQuery(plain))!;
  const answer = emptyAnswer(query, responseCode.ok);
  // The question's name, and a chain of pointers to it: a few are followed, many are not.
  const named = (jumps: number) => {
    const pointer = (target: number) => Buffer.of(0xc0 | (target >> 8), target & 255);
    const record = (name: Buffer, data: Buffer) =>
      Buffer.concat([name, Buffer.of(0, 1, 0, 1, 0, 0, 0, 30, data.length >> 8, data.length & 255), data]);
    const carrier = Buffer.concat(
      Array.from({ length: jumps }, (_, index) => pointer(index === 0 ? 12 : answer.length + 11 + 2 * (index - 1))),
    );
    const whole = Buffer.concat([
      answer,
      record(Buffer.of(0), carrier),
      record(pointer(answer.length + 11 + 2 * (jumps - 1)), Buffer.of(203, 0, 113, 9)),
    ]);
    whole.writeUInt16BE(2, 6);
    return readAnswer(whole).addresses;
  };
  expect(named(3)).toEqual(['203.0.113.9']);
  expect(named(200)).toEqual([]);
});
