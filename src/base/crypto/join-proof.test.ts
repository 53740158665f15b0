import { expect, test } from 'bun:test';
import { joinProof, newJoinToken, readJoinToken } from './join-proof.ts';

test('a proof needs the token, is for its parts alone, and is no proof of the other side', () => {
  const { text, key, tokenId } = newJoinToken();
  expect(readJoinToken(` ${text}\n`)).toEqual({ tokenId, key });
  const proof = joinProof(key, 'node', ['a', 'b']);
  expect(text).not.toContain(key);
  expect(joinProof(key, 'node', ['a', 'b'])).toBe(proof);
  for (const other of [
    joinProof(newJoinToken().key, 'node', ['a', 'b']),
    joinProof(key, 'control', ['a', 'b']),
    joinProof(key, 'node', ['ab', '']),
  ])
    expect(other).not.toBe(proof);
});

test('what is no token is refused', () => {
  for (const text of ['', 'atoll-join_1_2', `${newJoinToken().text}0`, newJoinToken().text.replace('join', 'other')])
    expect(() => readJoinToken(text)).toThrow('is none');
});
