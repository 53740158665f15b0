import { expect, test } from 'bun:test';
import { parseImageReference } from './reference.ts';
import { originOf } from './settings.ts';

test.each([
  ['debian', 'docker.io/library/debian:latest'],
  ['e2bdev/base', 'docker.io/e2bdev/base:latest'],
  ['index.docker.io/library/x:1', 'docker.io/library/x:1'],
  ['localhost:5000/a/b:v1.2-3_x', 'localhost:5000/a/b:v1.2-3_x'],
  ['ghcr.io/o/r@sha256:' + 'a'.repeat(64), 'ghcr.io/o/r@sha256:' + 'a'.repeat(64)],
  ['r.example/x:tag@sha256:' + 'a'.repeat(64), 'r.example/x@sha256:' + 'a'.repeat(64)],
])('%p means %p', (text, expected) => {
  expect(parseImageReference(text).text).toBe(expected);
});

test.each(['', 'UPPER', 'a//b', '-a', 'a:', '../x', 'a b', 'http://x/y', 'x@md5:abc', 'a/../b', 'x'.repeat(600)])(
  '%p is refused',
  text => {
    expect(() => parseImageReference(text)).toThrow('is not the name of an image');
  },
);

test('the operator’s map takes precedence over the mirrors, and finds names however they are written', () => {
  const settings = {
    images: { debian: '/srv/debian.tar', 'a/b:1': 'other.example/b:2' },
    mirrors: { 'docker.io': 'mirror.example:5000' },
    registries: {},
  };
  expect(originOf(settings, 'docker.io/library/debian:latest')).toEqual({ kind: 'file', path: '/srv/debian.tar' });
  expect(originOf(settings, 'a/b:1')).toMatchObject({
    reference: { registry: 'other.example', repository: 'b', version: '2' },
  });
  expect(originOf(settings, 'alpine:3')).toMatchObject({
    reference: { registry: 'mirror.example:5000', repository: 'library/alpine' },
  });
});
