import { afterAll, beforeAll, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { issueCertificate, makeAuthority } from '../../src/base/crypto/certificate.ts';
import { writeTar } from '../../src/base/write-tar.ts';
import { runInSandbox } from '../node/support/run-in-sandbox.ts';
import { startBuildNode, step, type BuildNode } from './support/build-node.ts';
import { scratch } from './support/scratch.ts';

const authority = makeAuthority('Authority of a network that opens TLS', 30);
let folder: ReturnType<typeof scratch>;
let builds: BuildNode;
beforeAll(async () => {
  folder = scratch();
  const authorities = join(folder.path, 'authority.pem');
  writeFileSync(authorities, authority.certificate);
  builds = await startBuildNode({ builds: { authorities } });
}, 600_000);
afterAll(async () => {
  await builds[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Checks all authorities that the system's programs trust, and those that Node.js is told of. */
const verify =
  'openssl verify -CAfile "$SSL_CERT_FILE" /srv/server.pem && ' +
  'openssl verify -CAfile "$NODE_EXTRA_CA_CERTS" /srv/server.pem';

test('what the operator adds is trusted in builds, and in their sandboxes beside what those are given', async () => {
  const archive = writeTar([
    {
      path: 'server.pem',
      type: 'file',
      attributes: { mode: 0o644, uid: 0, gid: 0 },
      content: Buffer.from(issueCertificate(authority, ['server.test'], 30).certificate),
    },
  ]);
  const copy = { ...step('COPY', 'server.pem', '/srv/'), filesHash: builds.upload(archive) };
  const state = await builds.built({ steps: [copy, step('RUN', verify)] });
  const verified = '/srv/server.pem: OK\n/srv/server.pem: OK\n';
  const count = 'grep -c BEGIN "$NODE_EXTRA_CA_CERTS"';
  const [, , before] = (await builds.inside(state, `${verify} && ${count}`)).split('\n');
  expect(Number(before)).toBeGreaterThan(0);

  const { protocol } = builds.test.node;
  // Its rules have an authority of their own, which goes to the same places.
  const network = { internetAccess: true, headerRules: { 'example.com': { a: 'b' } } };
  const sandbox = await protocol.create(
    builds.test.request({
      image: {
        ...{ templateId: 't', buildId: 'b', layers: state.layers },
        ...{ defaultUser: state.user, defaultWorkdir: state.workdir, buildEnv: state.env },
      },
      network,
    }),
  );
  try {
    const { stdout, stderr } = await runInSandbox(protocol, sandbox.sandboxId, `${verify} && ${count}`);
    expect(stdout + stderr).toBe(`${verified}${Number(before) + 1}\n`);
  } finally {
    await protocol.kill(sandbox);
  }
});
