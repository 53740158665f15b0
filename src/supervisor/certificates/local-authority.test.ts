import { afterEach, beforeEach, expect, setSystemTime, test } from 'bun:test';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { localAuthority } from './local-authority.ts';

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'atoll-authority-'))));
afterEach(() => {
  setSystemTime();
  rmSync(folder, { recursive: true });
});

const names = ['boxes.example', '*.boxes.example', '127.0.0.1'];
const open = (of: readonly string[] = names) => localAuthority(folder, of);
const dayMs = 86_400_000;

test('a certificate is for its names, by an authority of this folder, for at most a year', () => {
  const { current, authorityFile } = open();
  const certificate = new X509Certificate(current.certificate);
  const authority = new X509Certificate(readFileSync(authorityFile));
  expect(authorityFile).toBe(join(folder, 'ca.pem'));
  expect(certificate.verify(authority.publicKey)).toBe(true);
  expect(certificate.subjectAltName).toBe('DNS:boxes.example, DNS:*.boxes.example, IP Address:127.0.0.1');
  const days = (Date.parse(certificate.validTo) - Date.now()) / dayMs;
  expect(Math.round(days)).toBe(365);
  expect(Date.parse(authority.validTo) - Date.now()).toBeGreaterThan(3_600 * dayMs);
});

test('keys can be read by their owner alone, and certificates by everybody', () => {
  open();
  const modeOf = (name: string) => statSync(join(folder, name)).mode & 0o777;
  expect(['ca-key.pem', 'server-key.pem'].map(modeOf)).toEqual([0o600, 0o600]);
  expect(['ca.pem', 'server.pem'].map(modeOf)).toEqual([0o644, 0o644]);
  expect(localAuthority(join(folder, 'a/b'), names).authorityFile).toBe(join(folder, 'a/b/ca.pem'));
});

test.each([
  ['a domain', names],
  // No client accepts this wildcard, but it is what an installation without a domain of its own asks for.
  ['localhost', ['localhost', '*.localhost', '127.0.0.1', '::1']],
])('what is there for %s is used again', (_, of) => {
  const first = open(of);
  const second = open(of);
  expect(second.current).toEqual(first.current);
  second.refresh();
  expect(second.current).toEqual(first.current);
});

test.each([
  ['one more', [...names, 'other.example']],
  ['one less', names.slice(0, 2)],
  ['another name', ['other.example', ...names.slice(1)]],
  ['another address', [...names.slice(0, 2), '127.0.0.2']],
])('for other names (%s) another certificate is made, by the same authority', (_, others) => {
  const first = open();
  const authority = readFileSync(first.authorityFile, 'utf8');
  const second = open(others);
  expect(second.current).not.toEqual(first.current);
  expect(readFileSync(second.authorityFile, 'utf8')).toBe(authority);
  expect(new X509Certificate(second.current.certificate).subjectAltName?.split(', ')).toHaveLength(others.length);
});

test('it is renewed a month before its end, and kept', () => {
  const authority = open();
  const { current } = authority;
  const end = Date.parse(new X509Certificate(current.certificate).validTo);
  setSystemTime(end - 31 * dayMs);
  authority.refresh();
  expect(authority.current).toEqual(current);
  setSystemTime(end - 29 * dayMs);
  authority.refresh();
  expect(Date.parse(new X509Certificate(authority.current.certificate).validTo)).toBeGreaterThan(end);
  expect(open().current).toEqual(authority.current);
});

test('a pair that is incomplete, not a pair, or of another authority counts as none', () => {
  const first = open().current;
  rmSync(join(folder, 'server-key.pem'));
  const second = open().current;
  expect(second).not.toEqual(first);
  writeFileSync(join(folder, 'server-key.pem'), first.key);
  const third = open().current;
  expect(third.key).not.toBe(first.key);
  rmSync(join(folder, 'ca.pem'));
  const fourth = open();
  expect(fourth.current).not.toEqual(third);
  const authority = new X509Certificate(readFileSync(fourth.authorityFile));
  expect(new X509Certificate(fourth.current.certificate).verify(authority.publicKey)).toBe(true);
});
