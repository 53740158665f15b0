import { expect, test } from 'bun:test';
import { trustVariablesFor } from './trust-store.ts';

test('programs are told of authorities where there are any, of the sandbox or of its template', () => {
  expect(trustVariablesFor(undefined, '/nowhere')).toEqual({});
  expect(trustVariablesFor('', '/nowhere')).toEqual({});
  for (const variables of [trustVariablesFor('a certificate', '/nowhere'), trustVariablesFor(undefined, import.meta.path)]) {
    expect(Object.keys(variables)).toEqual(['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE']);
  }
});
