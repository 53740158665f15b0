import { expect, test } from 'bun:test';
import { createHmac } from 'node:crypto';
import { signToken, verifyToken } from './json-web-token.ts';

const key = new Uint8Array(32).fill(1);
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

test('signed claims are read again, with the same key alone', () => {
  const token = signToken(key, { kid: 'k' }, { sub: 'me', n: 1 });
  expect(verifyToken(key, token)).toEqual({ sub: 'me', n: 1 });
  expect(verifyToken(new Uint8Array(32).fill(2), token)).toBeNull();
});

test('nothing else passes', () => {
  const [header = '', claims = '', signature = ''] = signToken(key, {}, { sub: 'me' }).split('.');
  const other = encode({ sub: 'you' });
  const none = encode({ alg: 'none', typ: 'JWT' });
  const signedNone = createHmac('sha256', key).update(`${none}.${claims}`).digest('base64url');
  for (const token of [
    '',
    '..',
    `${header}.${claims}`,
    `${header}.${claims}.`,
    `${header}.${other}.${signature}`,
    `${none}.${claims}.`,
    `${none}.${claims}.${signedNone}`,
    `${header}.${claims}.${signature}x`,
    `${header}.${claims}.${signature.slice(1)}`,
    `${header}.${claims}.${signature}.`,
    'x'.repeat(10_000),
  ]) {
    expect([token, verifyToken(key, token)]).toEqual([token, null]);
  }
});
