import { expect, test } from 'bun:test';
import { trustVariablesFor, withThoseBefore } from './trust-store.ts';

test('programs are told of authorities where there are any, of the sandbox or of its template', () => {
  expect(trustVariablesFor(undefined, '/nowhere')).toEqual({});
  expect(trustVariablesFor('', '/nowhere')).toEqual({});
  for (const variables of [
    trustVariablesFor('a certificate', '/nowhere'),
    trustVariablesFor(undefined, import.meta.path),
  ]) {
    expect(Object.keys(variables)).toEqual(['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE']);
  }
});

test('what a template was built with stays beside what its sandbox is given', () => {
  const one = (name: string) => `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----\n`;
  expect(withThoseBefore(one('own'), '')).toBe(one('own'));
  expect(withThoseBefore(one('own'), one('build'))).toBe(one('own') + one('build'));
  // Applying it again changes nothing.
  expect(withThoseBefore(`\n${one('own')}\n`, one('own') + one('build'))).toBe(one('own') + one('build'));
  // Other content of the file is no certificate.
  expect(withThoseBefore(one('own'), `text -----BEGIN CERTIFICATE----- ${one('build')} -----END`)).toBe(
    one('own') + one('build'),
  );
  const many = Array.from({ length: 100 }, (_, index) => one(String(index)));
  const kept = withThoseBefore(one('own'), many.join(''));
  expect(kept.split(one('own'))).toHaveLength(2);
  expect(kept.match(/BEGIN/g)).toHaveLength(64);
});
