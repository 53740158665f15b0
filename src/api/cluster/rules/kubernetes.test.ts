import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeAuthority } from '../../../base/crypto/certificate.ts';
import { cordonsOf } from './kubernetes.ts';

// Tests with Kubernetes's answers in their real form.

const folder = mkdtempSync(join(tmpdir(), 'atoll-cordons-'));
writeFileSync(join(folder, 'token'), 'own-token\n');
writeFileSync(join(folder, 'ca.crt'), makeAuthority('test', 1).certificate);
afterAll(() => rmSync(folder, { recursive: true }));

async function asked(answer: object, status = 200) {
  const seen: { url: string; authorization: string | null }[] = [];
  using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname, search } = new URL(request.url);
      seen.push({
        url: decodeURIComponent(`${pathname}${search}`),
        authorization: request.headers.get('authorization'),
      });
      return Response.json(answer, { status });
    },
  });
  const outcome = await cordonsOf({ url: server.url.href, folder })().catch((error: unknown) => error);
  return { outcome, seen };
}

test('the addresses of the cordoned machines are read; control asks as itself, and for these alone', async () => {
  const items = [
    {
      status: {
        addresses: [
          { type: 'InternalIP', address: '10.0.0.7' },
          { type: 'Hostname', address: 'one' },
        ],
      },
    },
    { status: { addresses: [{ type: 'InternalIP', address: 'fd00::8' }] } },
    { status: {} },
  ];
  const { outcome, seen } = await asked({ kind: 'NodeList', items });
  expect(outcome).toEqual(new Set(['10.0.0.7', 'one', 'fd00::8']));
  expect(seen).toEqual([
    { url: '/api/v1/nodes?fieldSelector=spec.unschedulable=true', authorization: 'Bearer own-token' },
  ]);
});

test('if Kubernetes refuses, the error says so, and no machine counts as cordoned or free', async () => {
  const { outcome } = await asked({}, 403);
  expect(outcome).toMatchObject({
    code: 'unavailable',
    message: expect.stringMatching(/does not say which machines are cordoned: .*403/),
  });
});
