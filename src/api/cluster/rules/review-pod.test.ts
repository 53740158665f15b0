import { afterAll, expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeAuthority } from '../../../base/crypto/certificate.ts';
import { podReview } from './review-pod.ts';

// Tests with Kubernetes's answers in their real form; test/kubernetes uses a real one.

const folder = mkdtempSync(join(tmpdir(), 'atoll-review-'));
writeFileSync(join(folder, 'token'), 'own-token\n');
writeFileSync(join(folder, 'ca.crt'), makeAuthority('test', 1).certificate);
afterAll(() => rmSync(folder, { recursive: true }));

const account = { namespace: 'sandboxes', name: 'atoll-node' };
const extra = {
  'authentication.kubernetes.io/pod-name': ['node-x'],
  'authentication.kubernetes.io/pod-uid': ['uid-1'],
};
const good = {
  authenticated: true,
  audiences: ['atoll'],
  user: { username: 'system:serviceaccount:sandboxes:atoll-node', extra },
};
const there = {
  metadata: { uid: 'uid-1' },
  status: { hostIP: '10.0.0.7', hostIPs: [{ ip: '10.0.0.7' }, { ip: 'fd00::7' }] },
};

/** The result for a token whose review answers `status`, and whose pod is `pod` now. */
async function reviewed(status: object, pod: object = there, code = 200) {
  const asked: { path: string; authorization: string | null; body: unknown }[] = [];
  using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const path = new URL(request.url).pathname;
      const body = request.method === 'POST' ? await request.json() : undefined;
      asked.push({ path, authorization: request.headers.get('authorization'), body });
      return Response.json(path.endsWith('tokenreviews') ? { status } : pod, { status: code });
    },
  });
  const outcome = await podReview(account, { url: server.url.href, folder })('its-token').catch(
    (error: unknown) => error,
  );
  return { outcome, asked };
}

test('the pod of the account determines its machine’s addresses; control asks as itself', async () => {
  const { outcome, asked } = await reviewed(good);
  expect(outcome).toEqual({ hostAddresses: ['10.0.0.7', 'fd00::7'] });
  expect(asked.map(({ path }) => path)).toEqual([
    '/apis/authentication.k8s.io/v1/tokenreviews',
    '/api/v1/namespaces/sandboxes/pods/node-x',
  ]);
  expect(asked.every(({ authorization }) => authorization === 'Bearer own-token')).toBe(true);
  expect(asked[0]?.body).toMatchObject({ spec: { token: 'its-token', audiences: ['atoll'] } });
});

const strangers: Record<string, [status: object, pod?: object]> = {
  'a forged or old one': [{ authenticated: false }],
  'one for another audience': [{ ...good, audiences: ['https://kubernetes.default.svc'] }],
  'one of another account': [{ ...good, user: { ...good.user, username: 'system:serviceaccount:sandboxes:default' } }],
  'one of no pod': [{ ...good, user: { username: good.user.username } }],
  'one of a pod that another replaced': [good, { ...there, metadata: { uid: 'uid-2' } }],
};

for (const [what, [status, pod]] of Object.entries(strangers))
  test(`${what} is refused`, async () => {
    expect((await reviewed(status, pod)).outcome).toMatchObject({ code: 'unauthenticated' });
  });

test('if Kubernetes refuses to answer, nobody is admitted for now', async () => {
  const { outcome } = await reviewed(good, there, 403);
  expect(outcome).toMatchObject({ code: 'unavailable', message: expect.stringContaining('403') });
});
