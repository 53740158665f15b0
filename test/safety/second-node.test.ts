import { afterAll, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newJoinToken } from '../../src/base/crypto/join-proof.ts';
import { recordInstance } from '../../src/bin/platform/instance.ts';
import { claimInstallation } from '../../src/node/installation.ts';
import { atoll } from './support/directory.ts';

// Control knows a machine by the certificate that it gave it last: whoever joins under a machine's ID shuts it out.

const folder = mkdtempSync(join(tmpdir(), 'atoll-second-node-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs `atoll node` on a directory, and says what control was asked for. It refuses all. */
async function runNode(dataDir: string) {
  const asked: string[] = [];
  using control = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      asked.push(new URL(url).pathname);
      return Response.json({ message: 'taken' }, { status: 409 });
    },
  });
  const env = { ...process.env, ATOLL_DATA_DIR: dataDir, ATOLL_NODE_ADDRESS: '127.0.0.1:1', ATOLL_POOL_SIZE: '0' };
  const ended = await atoll(env, 'node', '--control', control.url.href, '--token', newJoinToken().text);
  return { asked, env, ...ended };
}

test('a second node on a directory that one runs on is refused at once, and changes nothing', async () => {
  const dataDir = mkdtempSync(join(folder, 'runs-'));
  recordInstance(dataDir);
  const before = readdirSync(dataDir);
  expect(await runNode(dataDir)).toMatchObject({
    asked: [],
    exitCode: 1,
    stderr: expect.stringContaining(`The platform of ${dataDir} runs already (process ${process.pid})`),
  });
  expect(readdirSync(dataDir)).toEqual(before);
});

test('a node joins when it has claimed its directory, and not before', async () => {
  const dataDir = mkdtempSync(join(folder, 'starts-'));
  const claim = claimInstallation(dataDir);
  try {
    const kept = await runNode(dataDir);
    expect(kept).toMatchObject({ asked: [], exitCode: 1, stderr: expect.stringContaining('another Atoll runs on') });
  } finally {
    claim.unlock();
  }
  const refused = await runNode(dataDir);
  expect(refused).toMatchObject({
    asked: ['/cluster/join'],
    exitCode: 1,
    stderr: expect.stringMatching(/Control at \S+ refused: taken/),
  });
  expect(existsSync(join(dataDir, 'cluster-identity'))).toBe(false);
  // What it has claimed of the host is given back.
  expect((await atoll(refused.env, 'down')).exitCode).toBe(0);
  expect(existsSync(claim.runDir)).toBe(false);
}, 120_000);
