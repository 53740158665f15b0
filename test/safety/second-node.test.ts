import { afterAll, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { joinProof, newJoinToken } from '../../src/base/crypto/join-proof.ts';
import { joinBefore } from '../../src/bin/cluster/machine.ts';
import { forgetInstance, recordInstance } from '../../src/bin/platform/instance.ts';
import { readSettings } from '../../src/bin/settings/settings.ts';
import { claimInstallation } from '../../src/node/installation.ts';
import { waitFor } from '../support/process.ts';
import { atoll } from './support/directory.ts';

// Control knows a machine by the certificate that it last issued: whoever joins under a machine's ID shuts the machine
// out.

const folder = mkdtempSync(join(tmpdir(), 'atoll-second-node-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs `atoll node` on a directory to its end; `asked` is what control has been asked for. It refuses everything. */
function runNode(dataDir: string) {
  const asked: string[] = [];
  const control = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      asked.push(new URL(url).pathname);
      return Response.json({ message: 'taken' }, { status: 409 });
    },
  });
  const env = { ...process.env, ATOLL_DATA_DIR: dataDir, ATOLL_NODE_ADDRESS: '127.0.0.1:1', ATOLL_POOL_SIZE: '0' };
  const ended = atoll(env, 'node', '--control', control.url.href, '--token', newJoinToken().text);
  return { asked, env, ended: ended.finally(() => control.stop(true)) };
}

test('a second node on a directory that one runs on is refused at once, and changes nothing', async () => {
  const dataDir = mkdtempSync(join(folder, 'runs-'));
  recordInstance(dataDir);
  const before = readdirSync(dataDir);
  const { asked, ended } = runNode(dataDir);
  expect(await ended).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining(`The platform of ${dataDir} runs already (process ${process.pid})`),
  });
  expect(asked).toEqual([]);
  expect(readdirSync(dataDir)).toEqual(before);
});

test('a node joins when it has claimed its directory, and not before', async () => {
  const dataDir = mkdtempSync(join(folder, 'starts-'));
  const claim = claimInstallation(dataDir);
  const { asked, env, ended } = runNode(dataDir);
  try {
    // It stores its programs right before it asks for the directory, and then waits as long as this process has it.
    await waitFor('the node to ask for its directory', () => existsSync(join(dataDir, 'node/built')), 60_000);
    expect(asked).toEqual([]);
  } finally {
    claim.unlock();
  }
  expect(await ended).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/Control at \S+ refused: taken/) });
  expect(asked).toEqual(['/cluster/join']);
  expect(existsSync(join(dataDir, 'cluster-identity'))).toBe(false);
  // What it claimed on the host is returned.
  expect((await atoll(env, 'down')).exitCode).toBe(0);
  expect(existsSync(claim.runDir)).toBe(false);
}, 120_000);

test('a machine joins before its service is there, and again by another invitation, but not while it runs', async () => {
  const dataDir = mkdtempSync(join(folder, 'service-'));
  const settings = readSettings({ ATOLL_DATA_DIR: dataDir, ATOLL_NODE_ADDRESS: '127.0.0.1:1' });
  const token = newJoinToken();
  let joins = 0;
  using control = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch() {
      joins++;
      const proof = joinProof(token.key, 'control', [token.tokenId, 'certificate', 'authority']);
      return Response.json({ certificate: 'certificate', authority: 'authority', proof }, { status: 201 });
    },
  });
  const invitation = { control: control.url.href, token: token.text };
  await expect(joinBefore(readSettings({ ATOLL_DATA_DIR: dataDir }), invitation)).rejects.toThrow('ATOLL_NODE_ADDRESS');
  await expect(joinBefore(settings, undefined)).rejects.toThrow('has not joined a cluster');
  await joinBefore(settings, invitation);
  await joinBefore(settings, undefined);
  recordInstance(dataDir);
  await expect(joinBefore(settings, invitation)).rejects.toMatchObject({ code: 'conflict' });
  await joinBefore(settings, undefined);
  forgetInstance(dataDir);
  expect({ joins, hasJoined: existsSync(join(dataDir, 'cluster-identity')) }).toEqual({ joins: 1, hasJoined: true });
  const { release, unlock } = claimInstallation(dataDir);
  release();
  unlock();
});

test('services of a cluster that would be refused again say so by their exit code', async () => {
  const env = { ...process.env, ATOLL_DATA_DIR: join(folder, 'refused') };
  const refused = [
    [['control'], 'ATOLL_DATABASE_URL'],
    [['node'], 'ATOLL_NODE_ADDRESS'],
  ] as const;
  for (const [[role], said] of refused)
    expect(await atoll(env, role, '--service')).toMatchObject({ exitCode: 78, stderr: expect.stringContaining(said) });
  for (const args of [
    ['--role', 'edge'],
    ['--token', 'x'],
    ['--role', 'control', '--control', 'x', '--token', 'y'],
  ])
    expect(await atoll(env, 'install', ...args)).toMatchObject({ exitCode: 2 });
});
