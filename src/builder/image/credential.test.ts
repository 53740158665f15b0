import { expect, test } from 'bun:test';
import { signedHeaders } from './credential.ts';

// AWS itself can't be asked here; the form follows its documentation.
test('a request to AWS is signed', () => {
  const request = {
    host: 'api.ecr.us-east-1.amazonaws.com',
    region: 'us-east-1',
    service: 'ecr',
    target: 'T',
    body: '{}',
    keyId: 'AKID',
    secret: 'secret',
    now: new Date('2026-01-02T03:04:05.678Z'),
  };
  const headers = signedHeaders(request);
  expect(headers['x-amz-date']).toBe('20260102T030405Z');
  const [credential, signed, signature] = headers['authorization']?.split(', ') ?? [];
  expect(credential).toBe('AWS4-HMAC-SHA256 Credential=AKID/20260102/us-east-1/ecr/aws4_request');
  expect(signed).toBe('SignedHeaders=content-type;host;x-amz-date;x-amz-target');
  expect(signature).toMatch(/^Signature=[0-9a-f]{64}$/);
  expect(signedHeaders({ ...request, secret: 'other' })['authorization']).not.toBe(headers['authorization']);
});
