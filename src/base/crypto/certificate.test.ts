import { expect, test } from 'bun:test';
import { X509Certificate } from 'node:crypto';
import { issueCertificate, makeAuthority } from './certificate.ts';

const authority = makeAuthority('Test authority', 3650);

test('an authority signs itself and others', () => {
  const root = new X509Certificate(authority.certificate);
  expect(root.ca).toBe(true);
  expect(root.subject).toBe('CN=Test authority');
  expect(root.verify(root.publicKey)).toBe(true);
  const server = new X509Certificate(issueCertificate(authority, ['example.com'], 30).certificate);
  expect(server.ca).toBe(false);
  expect(server.issuer).toBe('CN=Test authority');
  expect(server.checkIssued(root)).toBe(true);
  expect(server.verify(root.publicKey)).toBe(true);
});

test('a certificate holds for its names and its time', () => {
  const names = ['example.com', '*.example.com', '127.0.0.1', '::1', '2001:db8::5:0'];
  const pair = issueCertificate(authority, names, 30);
  const server = new X509Certificate(pair.certificate);
  for (const host of ['example.com', 'a.example.com']) expect(server.checkHost(host)).toBeDefined();
  expect(server.checkHost('a.b.example.com')).toBeUndefined();
  for (const address of ['127.0.0.1', '::1', '2001:db8::5:0']) expect(server.checkIP(address)).toBeDefined();
  expect(server.checkIP('::2')).toBeUndefined();
  const days = (Date.parse(server.validTo) - Date.now()) / 86_400_000;
  expect(days).toBeGreaterThan(29.9);
  expect(days).toBeLessThan(30.1);
  expect(Date.parse(server.validFrom)).toBeLessThan(Date.now());
  expect(pair.key).toContain('PRIVATE KEY');
});

test('each certificate has a number and a key of its own', () => {
  const [a, b] = [issueCertificate(authority, ['a'], 1), issueCertificate(authority, ['a'], 1)].map(
    pair => new X509Certificate(pair.certificate),
  );
  expect(a?.serialNumber).not.toBe(b?.serialNumber);
  expect(a?.fingerprint256).not.toBe(b?.fingerprint256);
});

test('dates after 2049 are right', () => {
  expect(
    new Date(new X509Certificate(makeAuthority('Late', 20_000).certificate).validTo).getUTCFullYear(),
  ).toBeGreaterThan(2050);
});
