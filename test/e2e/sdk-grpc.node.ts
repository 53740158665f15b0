import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { Sandbox } from 'e2b';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';

// gRPC to a server in a sandbox, through its preview URL: the published library on both sides.

const peer = join(repository, 'test/edge/support/grpc-peer.mjs');
const runtimes = join(repository, 'node_modules/@oven');
const run = promisify(execFile);
let platform: TestPlatform;
let folder: string;
before(async () => {
  // A domain with two labels, so that libraries accept the wildcard of its certificate.
  platform = await startPlatform({ ATOLL_TLS_PORT: '0', ATOLL_DOMAIN: 'atoll.localhost' });
  Object.assign(process.env, platform.env);
  folder = mkdtempSync(join(tmpdir(), 'atoll-grpc-'));
});
after(async () => {
  rmSync(folder, { recursive: true });
  await platform[Symbol.asyncDispose]();
});

type Outcome = { name: string; code: number } & Record<string, unknown>;

/** Makes the named calls; without names, all. */
async function call(port: string, authorityFile: string, host: string, names = ''): Promise<Outcome[]> {
  const { stdout } = await run('node', [peer, 'client', port, authorityFile, host, names]);
  return stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Outcome);
}

test('calls of every kind reach a server in a sandbox, over TLS and in the clear', { timeout: 180_000 }, async () => {
  const bundle = join(folder, 'peer.mjs');
  const [runtime = ''] = readdirSync(runtimes);
  await run(join(runtimes, runtime, 'bin/bun'), ['build', peer, '--target=node', `--outfile=${bundle}`]);
  const sandbox = await Sandbox.create();
  try {
    await sandbox.files.write('/tmp/peer.mjs', readFileSync(bundle, 'utf8'));
    const port = await new Promise<string>((resolve, reject) => {
      const heard = { onStdout: (text: string) => resolve(text.trim()), onStderr: reject };
      sandbox.commands.run('node /tmp/peer.mjs server', { background: true, ...heard }).catch(reject);
    });
    const host = `${port}-${sandbox.sandboxId}.${platform.ready.domain}`;
    const { url = '', authorityFile } = platform.ready.tls ?? {};
    const outcomes = await call(new URL(url).port, authorityFile ?? '', host);
    const codes = Object.fromEntries(outcomes.map(({ name, code }) => [name, code]));
    assert.deepEqual(codes, {
      ...{ unary: 0, empty: 0, serverStream: 0, clientStream: 0, bidirectional: 0, large: 0, many: 0 },
      ...{ error: 5, errorBehindMessages: 10, errorBeforeTheEnd: 3, unknownMethod: 12, cancel: 1, deadline: 4 },
    });
    const of = (wanted: string) => outcomes.find(({ name }) => name === wanted);
    assert.equal(of('large')?.['length'], 20 * 1024 * 1024);
    assert.equal(of('many')?.['right'], 200);
    const [plain] = await call(new URL(platform.ready.url).port, '', host, 'unary');
    assert.equal(plain?.['answer'], 'hello');
    const [closed] = await call(new URL(url).port, authorityFile ?? '', host.replace(/^\d+/, '4'), 'unary');
    assert.deepEqual([closed?.code, closed?.['details']], [14, 'The sandbox is running but port is not open']);
  } finally {
    await sandbox.kill();
  }
});
