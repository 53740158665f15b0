import { afterAll, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { keepAuthority } from '../cluster/store/authority.ts';
import { openStore } from '../database/database.ts';
import { putInstallation } from '../database/installation.ts';
import { checkPair, isOfCluster, requirePair, seedDigestOf } from './check.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'atoll-check-'));
afterAll(() => rmSync(dataDir, { recursive: true }));

test('a single machine does not take a cluster’s state for its own, and commands beside control do', async () => {
  const database = { kind: 'sqlite' as const, path: join(dataDir, 'api/atoll.sqlite') };
  const place = { dataDir, database };
  const seed = randomBytes(32);
  mkdirSync(join(dataDir, 'api'));
  writeFileSync(join(dataDir, 'seed'), seed.toString('hex'));
  writeFileSync(join(dataDir, 'node-id'), crypto.randomUUID());
  {
    await using store = await openStore(database);
    const known = { installationId: crypto.randomUUID(), seedDigest: seedDigestOf(seed), generation: 0 };
    await putInstallation(store.db, { ...known, acceptedAtUs: null });
  }
  expect(await isOfCluster(database)).toBe(false);
  expect(await checkPair(place, { accept: false, alone: true })).toMatchObject({ kind: 'to record' });
  {
    await using store = await openStore(database);
    await keepAuthority(store.db, { certificate: 'a certificate', sealedKey: 'a key' });
  }
  expect(await isOfCluster(database)).toBe(true);
  for (const accept of [false, true])
    await expect(checkPair(place, { accept, alone: true })).rejects.toThrow('is that of a cluster');
  await requirePair(place);
});
