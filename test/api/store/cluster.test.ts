import { expect, test } from 'bun:test';
import {
  abandonBlob,
  beginBlob,
  findBlob,
  finishBlob,
  hasBlobs,
  onceStored,
  referTo,
  storeIdOf,
  takenBack,
} from '../../../src/api/blob/store/blobs.ts';
import {
  blobsToDelete,
  markUnusedBlobs,
  markLeftUploads,
  dropLooseRefs,
  knownBlobs,
  pruneGone,
  removeBlob,
} from '../../../src/api/blob/store/collect.ts';
import { findAuthority, keepAuthority } from '../../../src/api/cluster/store/authority.ts';
import { findInvite, keepInvite, takeInvite } from '../../../src/api/cluster/store/invites.ts';
import {
  certifiedNode,
  deleteClusterNode,
  giveUpNodes,
  keepLeases,
  listClusterNodes,
  lockGivenUp,
  putCertificates,
  putClusterNode,
  takeNodeBack,
} from '../../../src/api/cluster/store/nodes.ts';
import { kindOf } from '../../../src/api/database/db.ts';
import type { Db } from '../../../src/api/database/db.ts';
import { insertBuild } from '../../../src/api/build/store/write.ts';
import { enterReplica, keepReplica, leaveReplica, pruneReplicas } from '../../../src/api/replica/store/replicas.ts';
import { onEachDatabase } from '../databases.ts';
import { pauseRowsOf } from '../../../src/api/cluster/rules/give-up.ts';
import type { SandboxDirectory } from '../../../src/api/sandbox/directory/directory.ts';
import { insertSandbox } from '../../../src/api/sandbox/store/create.ts';
import { homesOf, recordHome } from '../../../src/api/sandbox/store/past.ts';
import { sandboxesIn } from '../../../src/api/sandbox/store/read.ts';
import { atOnce, manySandboxes, sandboxRecord, startUs, storeScene } from './scene.ts';

// Results of statements about a cluster, on both databases: machines and their leases, processes, and what is stored
// outside of machines.

const layer = (name: string, blobId = `blob-${name}`) => ({
  blobId,
  kind: 'layer' as const,
  name,
  bytes: 5,
  sealedKey: null,
  facts: null,
});

async function stored(db: Db, name: string, owner: string, atUs: number): Promise<void> {
  expect(await beginBlob(db, layer(name), { replicaId: 'r', nowUs: atUs })).toBe(true);
  expect(await finishBlob(db, `blob-${name}`, { kind: 'build', id: owner }, atUs)).toBe(true);
}

onEachDatabase(database => {
  test('machines: who joins does not take the place of another who joined meanwhile', async () => {
    await using scene = await storeScene(database);
    const { db } = scene;
    const node = (certificates: string[]) => ({
      nodeId: 'a',
      address: '192.0.2.1:1',
      certificates,
      renewAtUs: startUs + 5,
      joinedAtUs: startUs,
    });
    expect(await certifiedNode(db, 'a')).toBeNull();
    const joined = await atOnce(certificate => putClusterNode(db, node([certificate]), null));
    expect(joined.toSorted()).toEqual([false, true]);
    const first = (await certifiedNode(db, 'a'))?.certificates ?? [];
    expect(await putClusterNode(db, node(['second']), ['other'])).toBe(false);
    expect(await putClusterNode(db, node(['second']), first)).toBe(true);
    const next = { certificates: ['second', 'third'], renewAtUs: startUs + 6 };
    expect(await putCertificates(db, node(first), next)).toBe(false);
    expect(await putCertificates(db, node(['second']), next)).toBe(true);
    expect(await listClusterNodes(db)).toEqual([
      { ...node(next.certificates), ...next, leaseUntilUs: null, isGivenUp: false, bootId: null, info: null },
    ]);
    await deleteClusterNode(db, 'a');
    expect(await certifiedNode(db, 'a')).toBeNull();
  });

  test('machines: where a sandbox was is asked of those that have not been taken out', async () => {
    await using scene = await storeScene(database);
    const { db } = scene;
    for (const nodeId of ['a', 'b']) {
      const node = { nodeId, address: '192.0.2.1:1', certificates: [], renewAtUs: 0, joinedAtUs: startUs };
      await putClusterNode(db, node, null);
      await recordHome(db, { sandboxId: 's', nodeId, leftAtUs: startUs });
    }
    expect((await homesOf(db, 's')).toSorted()).toEqual(['a', 'b']);
    await deleteClusterNode(db, 'a');
    // A sandbox that continues from the store is recorded as having been there.
    await recordHome(db, { sandboxId: 's', nodeId: 'a', leftAtUs: startUs });
    expect(await homesOf(db, 's')).toEqual(['b']);
  });

  test('leases: they grow alone, and a machine that was given up gets none until it is taken back', async () => {
    await using scene = await storeScene(database);
    const { db } = scene;
    const node = { nodeId: 'a', address: '192.0.2.1:1', certificates: ['c'], renewAtUs: 0, joinedAtUs: startUs };
    await putClusterNode(db, node, null);
    await putClusterNode(db, { ...node, nodeId: 'b' }, null);
    const keep = async (wanted: Record<string, number>) =>
      [
        ...(await keepLeases(
          db,
          Object.entries(wanted).map(([nodeId, us]) => ({ nodeId, untilUs: startUs + us })),
        )),
      ].sort();
    expect(await giveUpNodes(db, startUs)).toEqual([]); // they never had one
    expect(await keep({ a: 20, b: 30, nobody: 20 })).toEqual(['a', 'b']);
    expect(await keep({ a: 10, b: 40 })).toEqual(['a', 'b']);
    const leases = (await listClusterNodes(db)).map(({ leaseUntilUs }) => (leaseUntilUs ?? 0) - startUs);
    expect(leases).toEqual([20, 40]);
    expect(await giveUpNodes(db, startUs + 20)).toEqual([]);
    expect((await atOnce(() => giveUpNodes(db, startUs + 21))).flat()).toEqual(['a']);
    expect(await keep({ a: 99, b: 50 })).toEqual(['b']);
    expect(await keep({})).toEqual([]);
    if (kindOf(db) === 'postgres') expect(await lockGivenUp(db, 'a')).toMatchObject({ nodeId: 'a', isGivenUp: true });
    await takeNodeBack(db, 'a');
    if (kindOf(db) === 'postgres') expect(await lockGivenUp(db, 'a')).toBeNull();
    // By its former lease, it would be given up again at once.
    expect(await giveUpNodes(db, startUs + 41)).toEqual([]);
    expect(await keep({ a: 99 })).toEqual(['a']);
  });

  test('what ran on a machine that was given up counts as paused, in parts, for as long as it is given up', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    // A single machine is never given up.
    if (kindOf(db) !== 'postgres') return;
    const node = { nodeId: 'node-1', address: '192.0.2.1:1', certificates: ['c'], renewAtUs: 0, joinedAtUs: startUs };
    await putClusterNode(db, node, null);
    await keepLeases(db, [{ nodeId: 'node-1', untilUs: startUs }]);
    await giveUpNodes(db, startUs + 1);
    for (let i = 0; i < 40; i++) await insertSandbox(db, sandboxRecord(mine.teamId, `${i}`), manySandboxes);
    const resuming = { state: 'resuming', nextExecutionId: 'n' } as const;
    await insertSandbox(
      db,
      sandboxRecord(mine.teamId, 'stored', { ...resuming, durability: 'cluster' }),
      manySandboxes,
    );
    await insertSandbox(
      db,
      sandboxRecord(mine.teamId, 'not', { ...resuming, nextExecutionId: 'other', durability: 'node' }),
      manySandboxes,
    );
    const left = async () =>
      (await sandboxesIn(db, ['running', 'resuming'])).map(({ sandboxId }) => sandboxId).toSorted();
    const deps = (apply: () => void) => ({
      ...{ db, clock: () => startUs },
      directory: { apply } as unknown as SandboxDirectory,
    });
    const stopped = pauseRowsOf(
      deps(() => {
        throw new Error('the process ends');
      }),
      'node-1',
    );
    await expect(stopped).rejects.toThrow('the process ends');
    const { length } = await left();
    expect([length > 0, length < 42]).toEqual([true, true]);
    await takeNodeBack(db, 'node-1');
    await pauseRowsOf(
      deps(() => {}),
      'node-1',
    );
    expect(await left()).toHaveLength(length);
    await keepLeases(db, [{ nodeId: 'node-1', untilUs: startUs }]);
    await giveUpNodes(db, startUs + 1);
    let applied = 0;
    await pauseRowsOf(
      deps(() => applied++),
      'node-1',
    );
    expect(await left()).toEqual(['not']);
    expect(applied).toBe(length - 1);
    // The machine may have begun it before it was cut off; about the other one it says so itself.
    expect(await takenBack(db, ['n', 'other'])).toEqual(new Set(['n']));
    expect(await onceStored(db, ['n', 'other'])).toEqual(new Set(['n']));
  });

  test('invitations of machines are used once, in their time; the authority is the first that was kept', async () => {
    await using scene = await storeScene(database);
    const { db } = scene;
    const invite = (tokenId: string, expiresAtUs: number) => ({ tokenId, sealedKey: `key of ${tokenId}`, expiresAtUs });
    await keepInvite(db, invite('old', startUs + 1), startUs);
    await keepInvite(db, invite('new', startUs + 9), startUs + 1);
    expect(await takeInvite(db, 'old')).toBe(false);
    expect(await findInvite(db, 'new', startUs + 9)).toBeNull();
    expect(await findInvite(db, 'new', startUs + 8)).toBe('key of new');
    expect((await atOnce(() => takeInvite(db, 'new'))).toSorted()).toEqual([false, true]);
    expect(await findAuthority(db)).toBeNull();
    await keepAuthority(db, { certificate: 'first', sealedKey: 'k' });
    await keepAuthority(db, { certificate: 'second', sealedKey: 'l' });
    expect(await findAuthority(db)).toEqual({ certificate: 'first', sealedKey: 'k' });
  });

  test('blobs: a name is uploaded once at a time, and is there from when it is whole', async () => {
    await using scene = await storeScene(database);
    const { db } = scene;
    expect(await storeIdOf(db, 'first')).toBe('first');
    expect(await storeIdOf(db, 'second')).toBe('first');
    const by = { replicaId: 'r', nowUs: startUs };
    expect((await atOnce(id => beginBlob(db, layer('one', id), by))).toSorted()).toEqual([false, true]);
    const { blobId } = (await findBlob(db, 'layer', 'one')) ?? { blobId: '' };
    expect(await hasBlobs(db)).toBe(false);
    // Nobody can need what is not there yet.
    expect(await referTo(db, blobId, { kind: 'build', id: 'b' }, startUs)).toBe(false);
    expect(await finishBlob(db, blobId, { kind: 'build', id: 'b' }, startUs + 1)).toBe(true);
    expect(await finishBlob(db, blobId, { kind: 'build', id: 'b' }, startUs + 2)).toBe(false);
    expect(await findBlob(db, 'layer', 'one')).toEqual({
      ...layer('one', blobId),
      state: 'stored',
      changedAtUs: startUs + 1,
    });
    expect(await hasBlobs(db)).toBe(true);
    // What is given up makes room for another try, and does not come back.
    await beginBlob(db, layer('two'), by);
    await abandonBlob(db, 'blob-two', startUs + 3);
    expect(await finishBlob(db, 'blob-two', { kind: 'build', id: 'b' }, startUs + 4)).toBe(false);
    expect(await findBlob(db, 'layer', 'two')).toBeNull();
    expect(await beginBlob(db, layer('two', 'again'), by)).toBe(true);
  });

  test('blobs: what somebody refers to stays, what nobody does goes once it is old', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const size = { cpuCount: 1, memoryMiB: 512, diskMiB: 512 };
    await insertBuild(db, { buildId: 'kept', templateId: mine.templateId, tags: ['a'], ...size, nowUs: startUs });
    await stored(db, 'used', 'kept', startUs);
    await stored(db, 'unused', 'gone', startUs);
    await stored(db, 'fresh', 'gone', startUs + 8);
    await dropLooseRefs(db);
    await markUnusedBlobs(db, 'layer', { beforeUs: startUs + 5, nowUs: startUs + 9 });
    expect(await blobsToDelete(db, 9)).toEqual([{ blobId: 'blob-unused', bytes: 5 }]);
    // It is decided: nobody can refer to it any more.
    expect(await referTo(db, 'blob-unused', { kind: 'build', id: 'kept' }, startUs + 9)).toBe(false);
    expect(await referTo(db, 'blob-fresh', { kind: 'build', id: 'kept' }, startUs + 9)).toBe(true);
    expect(await knownBlobs(db, ['blob-unused', 'blob-used', 'none'])).toEqual(new Set(['blob-unused', 'blob-used']));
    await removeBlob(db, 'blob-unused', startUs + 10);
    expect(await knownBlobs(db, ['blob-unused'])).toEqual(new Set());
    // What must not be deleted is not removed by mistake.
    await removeBlob(db, 'blob-used', startUs + 10);
    expect((await findBlob(db, 'layer', 'used'))?.state).toBe('stored');
  });

  test('blobs: that a pause was stored is known for a while after it is gone', async () => {
    await using scene = await storeScene(database);
    const { db } = scene;
    const pause = { blobId: 'p', kind: 'pause' as const, name: 'e1', bytes: 7, sealedKey: 's', facts: null };
    await beginBlob(db, pause, { replicaId: 'r', nowUs: startUs });
    await finishBlob(db, 'p', { kind: 'execution', id: 'e1' }, startUs);
    await dropLooseRefs(db);
    await markUnusedBlobs(db, 'pause', { beforeUs: startUs + 1, nowUs: startUs + 2 });
    await removeBlob(db, 'p', startUs + 3);
    expect(await knownBlobs(db, ['p'])).toEqual(new Set());
    expect(await onceStored(db, ['e1', 'e2'])).toEqual(new Set(['e1']));
    await pruneGone(db, startUs + 3);
    expect(await onceStored(db, ['e1'])).toEqual(new Set(['e1']));
    await pruneGone(db, startUs + 4);
    expect(await onceStored(db, ['e1'])).toEqual(new Set());
    expect([await onceStored(db, []), await knownBlobs(db, [])]).toEqual([new Set(), new Set()]);
  });

  test('uploads of a process that is over are given up, those of one that lives are not', async () => {
    await using scene = await storeScene(database);
    const { db } = scene;
    await enterReplica(db, { replicaId: 'dead', name: 'a' }, startUs + 5);
    await enterReplica(db, { replicaId: 'alive', name: 'b' }, startUs + 5);
    await keepReplica(db, { replicaId: 'alive', name: 'b' }, startUs + 50);
    for (const replicaId of ['dead', 'alive', 'own', 'unknown'])
      await beginBlob(db, layer(replicaId), { replicaId, nowUs: startUs });
    await markLeftUploads(db, { ownId: 'own', nowUs: startUs + 10 });
    const states = async () =>
      Promise.all(['dead', 'alive', 'own', 'unknown'].map(async name => (await findBlob(db, 'layer', name))?.state));
    expect(await states()).toEqual([undefined, 'uploading', 'uploading', undefined]);
    // A process restarted in the same place is a new one: what its predecessor did is over.
    await enterReplica(db, { replicaId: 'next', name: 'b' }, startUs + 50);
    await markLeftUploads(db, { ownId: 'own', nowUs: startUs + 11 });
    expect(await states()).toEqual([undefined, undefined, 'uploading', undefined]);
    await leaveReplica(db, 'next');
    await pruneReplicas(db, startUs + 100);
    expect(await db.selectFrom('replicas').selectAll().execute()).toEqual([]);
  });
});
