import { X509Certificate } from 'node:crypto';
import { expect, test } from 'bun:test';
import { issueCertificate, makeAuthority } from './certificate.ts';
import { joinProof, newJoinToken, readJoinToken, rejoiner, rejoinProof } from './join-proof.ts';

test('a proof needs the token, is only for its parts, and is no proof of the other side', () => {
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

test('an invalid token is refused', () => {
  for (const text of ['', 'atoll-join_1_2', `${newJoinToken().text}0`, newJoinToken().text.replace('join', 'other')])
    expect(() => readJoinToken(text)).toThrow('is none');
});

test('a returning machine is recognised by the key of a certificate, for these parts alone', () => {
  const authority = makeAuthority('test', 1);
  const [own, other] = [issueCertificate(authority, ['a'], 1), issueCertificate(authority, ['a'], 1)];
  const proof = rejoinProof(own.key, ['a', 'b']);
  const digest = new X509Certificate(own.certificate).fingerprint256.replaceAll(':', '').toLowerCase();
  expect(rejoiner(own.certificate, proof, ['a', 'b'])).toBe(digest);
  expect(rejoiner(own.certificate, proof, ['a', 'c'])).toBeNull();
  expect(rejoiner(other.certificate, proof, ['a', 'b'])).toBeNull();
  expect(rejoiner(own.certificate, rejoinProof(other.key, ['a', 'b']), ['a', 'b'])).toBeNull();
  for (const wrong of ['', 'x', own.certificate.slice(0, 100), own.key])
    expect(rejoiner(wrong, proof, ['a', 'b'])).toBeNull();
  // One text with two certificates: the key and the digest must be of the same one.
  const both = rejoiner(`${other.certificate}${own.certificate}`, rejoinProof(other.key, ['a', 'b']), ['a', 'b']);
  expect(both).not.toBe(digest);
});
