import { blobsToDelete, dropLooseRefs, markUnusedBlobs } from '../../../src/api/blob/store/collect.ts';
import { beginBlob, finishBlob } from '../../../src/api/blob/store/blobs.ts';
import { enterReplica } from '../../../src/api/replica/store/replicas.ts';
import {
  beginCopy,
  beginMove,
  finishMove,
  letGo,
  recordCopy,
  takeOverVolume,
  volumesLeft,
} from '../../../src/api/volume/store/moves.ts';
import { expect, test } from 'bun:test';
import { buildLogSource } from '../../../src/api/build/rules/log-stream.ts';
import { appendBuildLog, buildLogLength, readBuildLog } from '../../../src/api/build/store/log.ts';
import {
  buildsInStatus,
  findBuild,
  layersInUse,
  openBuildCount,
  rivalBuilds,
} from '../../../src/api/build/store/read.ts';
import { beginBuild, failBuilds, insertBuild, moveBuild, publishBuild } from '../../../src/api/build/store/write.ts';
import { recordEvent } from '../../../src/api/event/store/write.ts';
import {
  countSecrets,
  deleteSecret,
  findSecret,
  insertSecret,
  listSecrets,
  replaceSecretValue,
} from '../../../src/api/secret/store/secrets.ts';
import {
  forgetVolumeRemoval,
  recordVolumeRemovalHere,
  volumeRemovalsOn,
} from '../../../src/api/volume/store/removals.ts';
import {
  deleteVolume,
  findVolume,
  insertVolume,
  listVolumes,
  volumesOnNode,
} from '../../../src/api/volume/store/volumes.ts';
import {
  claimDelivery,
  dueHeads,
  listDeliveries,
  releaseClaims,
  renewDelivery,
  settleDelivery,
  webhooksDue,
} from '../../../src/api/webhook/store/deliveries.ts';
import { insertWebhook } from '../../../src/api/webhook/store/webhooks.ts';
import { findTeam } from '../../../src/api/team/store/team.ts';
import { assert } from '../../../src/base/error.ts';
import { onEachDatabase } from '../databases.ts';
import { atOnce, startUs, storeScene } from './scene.ts';

// Results of statements, on both databases: what is refused, what is counted, and who wins when two run at once.

const secret = (teamId: string, name: string, number: number) => ({
  secretId: `secret-${number}`,
  teamId,
  name,
  currentVersion: 1,
  sealedValue: `sealed ${number}`,
  metadata: { quoted: '"\\\n\u{1f600}' },
  createdAtUs: startUs + number,
  updatedAtUs: startUs + number,
});

const volume = (teamId: string, volumeId: string, name = volumeId) => ({
  volumeId,
  teamId,
  nodeId: 'node-1',
  name,
  sizeMiB: 64,
  createdAtUs: startUs,
});

const build = (templateId: string, buildId: string, tags: string[] = ['default']) => ({
  buildId,
  templateId,
  tags,
  cpuCount: 2,
  memoryMiB: 512,
  diskMiB: 1024,
  nowUs: startUs,
});

onEachDatabase(database => {
  test('secrets: a name is taken once in a team, pages are newest first, and others have no part in them', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    for (let number = 0; number < 5; number++)
      expect(await insertSecret(db, secret(mine.teamId, `name-${number}`, number))).toBe(true);
    expect(await insertSecret(db, secret(mine.teamId, 'name-3', 9))).toBe(false);
    expect(await insertSecret(db, secret(theirs.teamId, 'name-3', 9))).toBe(true);
    expect(await countSecrets(db, mine.teamId)).toBe(5);
    expect(await findSecret(db, mine.teamId, 'name-2')).toEqual(secret(mine.teamId, 'name-2', 2));
    expect(await findSecret(db, mine.teamId, 'secret-2')).toEqual(secret(mine.teamId, 'name-2', 2));
    expect(await findSecret(db, mine.teamId, 'secret-9')).toBeNull();
    const first = await listSecrets(db, mine.teamId, { limit: 2 });
    expect(first.map(({ secretId }) => secretId)).toEqual(['secret-4', 'secret-3']);
    const after = { atUs: startUs + 3, id: 'secret-3' };
    expect((await listSecrets(db, mine.teamId, { after, limit: 9 })).map(({ secretId }) => secretId)).toEqual([
      'secret-2',
      'secret-1',
      'secret-0',
    ]);
    expect(await deleteSecret(db, 'secret-2')).toBe(true);
    expect(await deleteSecret(db, 'secret-2')).toBe(false);
  });

  test('secrets: of two replacements of one version, one wins', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    await insertSecret(db, secret(mine.teamId, 'name', 0));
    const answers = await atOnce(sealedValue =>
      replaceSecretValue(db, { secretId: 'secret-0', version: 1 }, { sealedValue, metadata: {}, nowUs: startUs + 7 }),
    );
    const won = answers.filter(answer => answer !== null);
    expect(won).toHaveLength(1);
    expect(await findSecret(db, mine.teamId, 'name')).toEqual({
      ...secret(mine.teamId, 'name', 0),
      currentVersion: 2,
      sealedValue: won[0]?.sealedValue ?? '',
      metadata: {},
      updatedAtUs: startUs + 7,
    });
  });

  test("a volume goes to another machine where no sandbox has it, by one process, and is nobody's on its way", async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const made = volume(mine.teamId, 'one');
    await insertVolume(db, made, 3);
    const [first, second] = ['first', 'second'].map(ownId => ({ ownId, nowUs: startUs }));
    if (!first || !second) throw new Error('there are two');
    for (const replica of [first, second])
      await enterReplica(db, { replicaId: replica.ownId, name: replica.ownId }, startUs + 1000);
    expect(await beginMove(db, made, 'node-2', first)).toBe('begun');
    // Nobody else moves, copies or deletes it, and what comes to the other machine is accounted for.
    expect(await beginMove(db, made, 'node-3', second)).toBe('left_over');
    expect(await beginCopy(db, 'one', second)).toBe(false);
    expect(await deleteVolume(db, made, { shownMax: 1, nowUs: startUs })).toEqual({
      deleted: false,
      sandboxIds: [],
      more: 0,
    });
    expect((await findVolume(db, 'one'))?.movingTo).toBe('node-2');
    expect(await volumesOnNode(db, 'node-2')).toEqual(['one']);
    expect(await volumeRemovalsOn(db, 'node-2')).toEqual([{ volumeId: 'one', recordedAtUs: startUs }]);
    expect(await finishMove(db, made, 'node-2', second)).toBe(false);
    expect(await finishMove(db, made, 'node-2', first)).toBe(true);
    expect(await findVolume(db, 'one')).toMatchObject({ nodeId: 'node-2', movingTo: null });
    // The first machine's copy must go, and before that the volume goes nowhere else.
    expect(await volumeRemovalsOn(db, 'node-1')).toEqual([{ volumeId: 'one', recordedAtUs: startUs }]);
    const there = { ...made, nodeId: 'node-2' };
    expect(await beginMove(db, there, 'node-1', first)).toBe('left_over');
    // If its own machine can't remove it either, that machine is asked again; the other machine's is listed as an
    // orphan.
    await recordVolumeRemovalHere(db, there, startUs + 1);
    expect(await volumeRemovalsOn(db, 'node-1')).toEqual([]);
    expect(await volumeRemovalsOn(db, 'node-2')).toEqual([{ volumeId: 'one', recordedAtUs: startUs + 1 }]);
    await recordVolumeRemovalHere(db, made, startUs);
    // The removal of another machine's copy says nothing about this one's.
    await forgetVolumeRemoval(db, there);
    expect(await volumeRemovalsOn(db, 'node-1')).toHaveLength(1);
    await forgetVolumeRemoval(db, made);
    // A move whose process is over is settled by another process.
    expect(await beginMove(db, there, 'node-1', first)).toBe('begun');
    const late = { ...second, nowUs: startUs + 2000 };
    expect(await volumesLeft(db, second)).toEqual([]);
    expect((await volumesLeft(db, late)).map(({ volumeId }) => volumeId)).toEqual(['one']);
    expect(await takeOverVolume(db, 'one', late)).toBe(true);
    expect(await finishMove(db, there, 'node-1', first)).toBe(false);
    await letGo(db, 'one', 'second');
    expect(await findVolume(db, 'one')).toMatchObject({ nodeId: 'node-2', movingTo: null });
  });

  test('the newest copy of a volume is kept, and no other one', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    await insertVolume(db, volume(mine.teamId, 'one'), 3);
    const replica = { replicaId: 'r', nowUs: startUs };
    const blob = async (blobId: string) => {
      await beginBlob(db, { blobId, kind: 'volume', name: blobId, bytes: 1, sealedKey: null, facts: null }, replica);
      await finishBlob(db, blobId, null, startUs);
      return recordCopy(db, 'one', { copyId: blobId, copiedAtUs: startUs, changeUs: 7 }, startUs);
    };
    const deleted = async () => {
      await dropLooseRefs(db);
      await markUnusedBlobs(db, 'volume', { beforeUs: startUs + 1, nowUs: startUs });
      return (await blobsToDelete(db, 9)).map(({ blobId }) => blobId);
    };
    expect(await blob('b1')).toBe(true);
    expect(await findVolume(db, 'one')).toMatchObject({ copy: { copyId: 'b1', copiedAtUs: startUs, changeUs: 7 } });
    expect(await deleted()).toEqual([]);
    expect(await blob('b2')).toBe(true);
    expect(await deleted()).toEqual(['b1']);
    await deleteVolume(db, volume(mine.teamId, 'one'), { shownMax: 1, nowUs: startUs });
    expect((await deleted()).toSorted()).toEqual(['b1', 'b2']);
    expect(await blob('b3')).toBe(false);
  });

  test('volumes: name and number are bounded with the writing in one, and what is deleted is noted for its node', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    expect(await insertVolume(db, volume(mine.teamId, 'one'), 3)).toBe('inserted');
    expect(await insertVolume(db, volume(mine.teamId, 'other', 'one'), 3)).toBe('taken');
    expect(await insertVolume(db, volume(theirs.teamId, 'theirs', 'one'), 3)).toBe('inserted');
    expect((await atOnce(id => insertVolume(db, volume(mine.teamId, id), 2))).toSorted()).toEqual(['full', 'inserted']);
    expect((await listVolumes(db, mine.teamId)).length).toBe(2);
    expect(await findVolume(db, 'one')).toEqual({ ...volume(mine.teamId, 'one'), movingTo: null, copy: null });
    expect((await volumesOnNode(db, 'node-1')).length).toBe(3);
    const last = { shownMax: 10, nowUs: startUs + 5 };
    expect(await deleteVolume(db, volume(mine.teamId, 'one'), last)).toEqual({ deleted: true, nodeId: 'node-1' });
    expect(await volumeRemovalsOn(db, 'node-1')).toEqual([{ volumeId: 'one', recordedAtUs: startUs + 5 }]);
    // A second deletion finds nothing and reports nothing.
    const again = await deleteVolume(db, volume(mine.teamId, 'one'), { ...last, nowUs: startUs + 6 });
    expect(again).toEqual({ deleted: true, nodeId: null });
    expect(await volumeRemovalsOn(db, 'node-1')).toEqual([{ volumeId: 'one', recordedAtUs: startUs + 5 }]);
    // A reused ID is nobody's leftover.
    expect(await insertVolume(db, volume(mine.teamId, 'one'), 3)).toBe('inserted');
    expect(await volumeRemovalsOn(db, 'node-1')).toEqual([]);
    const told = await db.selectFrom('events').select(['type', 'subject_id']).where('subject_id', '=', 'one').execute();
    expect(told.map(({ type }) => type)).toEqual([
      'volume.lifecycle.created',
      'volume.lifecycle.deleted',
      'volume.lifecycle.created',
    ]);
  });

  test('deliveries: one at a time for a subject, in its order, and each try is one process’s', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const webhookId = 'webhook-1';
    await insertWebhook(db, {
      webhookId,
      teamId: mine.teamId,
      name: 'hook',
      url: 'https://example.org/',
      enabled: true,
      types: ['sandbox.lifecycle.created'],
      sealedSecret: 's',
      failing: false,
      createdAtUs: startUs,
      updatedAtUs: startUs,
    });
    const tell = (id: string, atUs: number) =>
      db
        .transaction()
        .execute(transaction =>
          recordEvent(transaction, {
            teamId: mine.teamId,
            type: 'sandbox.lifecycle.created',
            subject: { kind: 'sandbox', id },
            atUs,
            data: null,
          }),
        );
    await tell('a', startUs);
    await tell('a', startUs + 1);
    await tell('b', startUs + 2);
    const nowUs = startUs + 100;
    expect((await webhooksDue(db, nowUs)).map(webhook => webhook.webhookId)).toEqual([webhookId]);
    expect(await webhooksDue(db, startUs - 1)).toEqual([]);
    const heads = await dueHeads(db, webhookId, nowUs, 10);
    const all = (await listDeliveries(db, webhookId, {}, { offset: 0, limit: 10 })).toReversed();
    const [firstOfA, secondOfA, firstOfB] = all.map(({ sequence }) => sequence);
    expect(heads).toEqual([firstOfA, firstOfB] as number[]);
    // Two processes claim the same one: one gets it, until its time is over.
    const ref = { webhookId, sequence: firstOfA ?? 0 };
    const claims = await atOnce(() => claimDelivery(db, ref, nowUs, nowUs + 1000));
    expect(claims.filter(claim => claim !== null)).toMatchObject([{ ...ref, subject: 'sandbox:a', attempts: 1 }]);
    expect(await claimDelivery(db, ref, nowUs + 999, nowUs + 5000)).toBeNull();
    // What an ended process had claimed is free again.
    await releaseClaims(db, nowUs + 10);
    expect(await claimDelivery(db, ref, nowUs + 10, nowUs + 1000)).toMatchObject({ attempts: 2 });
    // A failed try keeps what is behind it waiting as long as itself.
    const failed = { state: 'pending', status: 500, error: 'no', dueAtUs: nowUs + 9000, nowUs } as const;
    const tried = (attempts: number) => ({ ...ref, subject: 'sandbox:a', attempts });
    // A try whose time had run out ends beside the next one: it changes nothing then.
    await settleDelivery(db, tried(1), { ...failed, state: 'dead' });
    expect(await claimDelivery(db, ref, nowUs + 999, nowUs + 5000)).toBeNull();
    expect(await listDeliveries(db, webhookId, { state: 'dead' }, { offset: 0, limit: 10 })).toEqual([]);
    expect((await webhooksDue(db, nowUs)).map(({ failing }) => failing)).toEqual([false]);
    await settleDelivery(db, tried(2), failed);
    expect(await dueHeads(db, webhookId, nowUs + 8999, 10)).toEqual([firstOfB] as number[]);
    expect(await dueHeads(db, webhookId, nowUs + 9000, 10)).toEqual([firstOfB, firstOfA] as number[]);
    // Delivered: the next event of its subject has its turn, and this one can be sent again.
    await claimDelivery(db, ref, nowUs + 9000, nowUs + 9999);
    const delivered = { state: 'delivered', status: 200, error: null, dueAtUs: 0, nowUs: nowUs + 9001 } as const;
    await settleDelivery(db, tried(3), delivered);
    expect(await dueHeads(db, webhookId, nowUs + 9002, 10)).toEqual([firstOfB, secondOfA] as number[]);
    expect(await listDeliveries(db, webhookId, { state: 'delivered' }, { offset: 0, limit: 10 })).toMatchObject([
      { sequence: firstOfA, attempts: 3, lastStatus: 200, finishedAtUs: nowUs + 9001 },
    ]);
    expect(await renewDelivery(db, ref, nowUs + 9003)).toBe(true);
    expect(await renewDelivery(db, ref, nowUs + 9003)).toBe(false);
  });

  test('builds: states follow one another once, the bound of a team holds for two at once, and tags make rivals', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    for (const id of ['one', 'two', 'three']) await insertBuild(db, build(mine.templateId, id));
    await insertBuild(db, build(mine.templateId, 'tagged', ['other']));
    await insertBuild(db, build(theirs.templateId, 'theirs'));
    const replicaId = 'the process that starts them';
    const bound = { concurrentMax: 1, rivals: [], nowUs: startUs + 1 };
    const begun = await Promise.all(
      ['one', 'two'].map(buildId => beginBuild(db, { buildId, teamId: mine.teamId, replicaId }, bound)),
    );
    expect(begun.toSorted()).toEqual(['begun', 'full']);
    const running = begun[0] === 'begun' ? 'one' : 'two';
    const waiting = running === 'one' ? 'two' : 'one';
    expect(await openBuildCount(db, mine.teamId)).toBe(1);
    expect(await openBuildCount(db, mine.teamId, [running])).toBe(0);
    // Before its node has heard of it: nobody else asks the node for it.
    const owned = await db.selectFrom('builds').select('build_id').where('replica_id', '=', replicaId).execute();
    expect(owned).toEqual([{ build_id: running }]);
    expect(await beginBuild(db, { buildId: 'theirs', teamId: theirs.teamId, replicaId }, bound)).toBe('begun');
    expect(
      await beginBuild(db, { buildId: waiting, teamId: mine.teamId, replicaId }, { ...bound, rivals: [running] }),
    ).toBe('begun');
    const ids = await rivalBuilds(db, { templateId: mine.templateId, buildId: waiting }, ['waiting', 'building']);
    expect(ids.toSorted()).toEqual([running, 'three'].toSorted());
    // Only a running one can succeed, and only once.
    const outcome = {
      layers: ['sha256:1', 'sha256:2'],
      config: {
        defaultUser: 'user',
        defaultWorkdir: '',
        buildEnv: {},
        started: {
          snapshotId: 'kept',
          layers: ['sha256:3'],
          resources: { cpuCount: 2, memoryMiB: 512, diskMiB: 1024 },
        },
      },
      agentVersion: 'v',
      diskMiB: 2048,
    };
    expect(await publishBuild(db, 'three', outcome, startUs + 2)).toBe(false);
    expect(await publishBuild(db, running, outcome, startUs + 2)).toBe(true);
    expect(await publishBuild(db, running, outcome, startUs + 3)).toBe(false);
    expect(await findBuild(db, running)).toMatchObject({ ...outcome, status: 'ready', finishedAtUs: startUs + 2 });
    expect((await layersInUse(db)).toSorted()).toEqual(['sha256:1', 'sha256:2', 'sha256:3']);
    // What has ended stays as it is.
    const reason = { message: 'it broke', step: '2' };
    await failBuilds(db, [running, waiting, 'three'], reason, startUs + 4);
    expect((await findBuild(db, running))?.status).toBe('ready');
    expect(await findBuild(db, waiting)).toMatchObject({ status: 'error', reason });
    expect(await moveBuild(db, waiting, 'waiting', 'building', startUs + 5)).toBe(false);
    expect((await buildsInStatus(db, ['waiting'])).map(({ buildId }) => buildId)).toEqual(['tagged']);
    expect(await findBuild(db, 'none')).toBeNull();
  });

  test('builds: lines that are written twice are there once, and pages are cut by level, time and place', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    await insertBuild(db, build(mine.templateId, 'one'));
    const lines = Array.from({ length: 1100 }, (_, number) => ({
      timestampMs: 1000 + number,
      level: number % 100 === 0 ? ('error' as const) : ('info' as const),
      message: `line ${number}\0`,
      ...(number === 3 && { step: '1' }),
    }));
    await appendBuildLog(db, 'one', 0, lines);
    await appendBuildLog(db, 'one', 1050, lines.slice(1050));
    expect(await buildLogLength(db, 'one')).toBe(1100);
    const [third] = await readBuildLog(db, 'one', { offset: 3, limit: 1 });
    expect(third).toEqual({ timestampMs: 1003, level: 'info', message: 'line 3', step: '1' });
    const messages = async (page: Parameters<typeof readBuildLog>[2]) =>
      (await readBuildLog(db, 'one', page)).map(({ message }) => message);
    expect(await messages({ level: 'error', offset: 1, limit: 2 })).toEqual(['line 100', 'line 200']);
    expect(await messages({ backward: true, cursorMs: 1002, limit: 9 })).toEqual(['line 1', 'line 0']);
    expect(await messages({ cursorMs: 2098, limit: 9 })).toEqual(['line 1098', 'line 1099']);
  });

  test('builds: a stream of one level looks at no line twice', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const buildId = crypto.randomUUID();
    await insertBuild(db, build(mine.templateId, buildId));
    const line = (message: string, level: 'info' | 'error') => ({ timestampMs: 1, level, message });
    await appendBuildLog(db, buildId, 0, [line('a', 'error'), line('b', 'info'), line('c', 'info')]);
    const team = await findTeam(db, { teamId: mine.teamId });
    assert(team !== null, 'the scene has it');
    const source = await buildLogSource(
      db,
      team,
      { templateId: mine.templateId, buildId },
      { after: 0, level: 'warn' },
    );
    const told = async () => (await source.next()).items.map(({ place, item }) => `${place} ${item.message}`);
    expect(await told()).toEqual(['1 a']);
    // It would be reported now, if it was read again.
    await db.deleteFrom('build_log').where('number', '=', 1).execute();
    await appendBuildLog(db, buildId, 1, [line('b', 'error')]);
    expect(await told()).toEqual([]);
    await appendBuildLog(db, buildId, 3, [line('d', 'error')]);
    expect(await told()).toEqual(['4 d']);
  });
});
