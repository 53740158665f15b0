import { expect, test } from 'bun:test';
import { countKept, countWaiting } from '../../../src/api/build/store/counts.ts';
import { appendBuildLog, buildLogLength } from '../../../src/api/build/store/log.ts';
import { moveBuildOn, placeOfBuild, putPlaceOfBuild, runningBuildsByNode } from '../../../src/api/build/store/node.ts';
import { findStep, forgetStep, pruneSteps, putSteps } from '../../../src/api/build/store/steps.ts';
import { buildsInStatus, findBuild } from '../../../src/api/build/store/read.ts';
import {
  neverStarted,
  pruneBuildLogs,
  pruneFailedBuilds,
  pruneSuperseded,
  removeOldestFailed,
} from '../../../src/api/build/store/retention.ts';
import { buildsToStore, recordLayersStored } from '../../../src/api/build/store/stored.ts';
import { claimBuild, failBuilds, insertBuild, moveBuild } from '../../../src/api/build/store/write.ts';
import type { Db } from '../../../src/api/database/db.ts';
import { enterReplica } from '../../../src/api/replica/store/replicas.ts';
import { listSnapshots, memorySnapshotsInUse } from '../../../src/api/snapshot/store/list.ts';
import {
  deleteTemplateRow,
  removeTags,
  setTemplatePublic,
  tagsOf,
  unnameTemplate,
} from '../../../src/api/template/store/change.ts';
import { layersByTemplate } from '../../../src/api/template/store/layers.ts';
import { listBuilds, listDefaultTemplates, listTemplates, newestBuilds } from '../../../src/api/template/store/list.ts';
import { putTags, tagNames } from '../../../src/api/template/store/put-tags.ts';
import {
  firstAlias,
  namesOf,
  readyBuild,
  taggedBuild,
  templateByName,
} from '../../../src/api/template/store/resolve.ts';
import {
  countTags,
  listAssignments,
  listTagUses,
  newestAssignments,
} from '../../../src/api/template/store/tag-assignments.ts';
import { addReadyBuild, insertTemplate, nameTemplate } from '../../../src/api/template/store/write.ts';
import { onEachDatabase } from '../databases.ts';
import { startUs, storeScene } from './scene.ts';

// Results of statements about templates, builds and snapshots, on both databases.

const ready = (templateId: string, buildId: string, layers = [`sha256:${buildId}`], memorySnapshotId?: string) => ({
  buildId,
  templateId,
  cpuCount: 2,
  memoryMiB: 512,
  diskMiB: 1024,
  agentVersion: '1',
  layers,
  config: { defaultUser: 'user', defaultWorkdir: '', buildEnv: {}, ...(memorySnapshotId && { memorySnapshotId }) },
});

async function putReady(db: Db, templateId: string, buildId: string, tag: string, number: number): Promise<void> {
  await addReadyBuild(db, ready(templateId, buildId), { sandboxId: null, tag, nowUs: startUs + number });
}

const waiting = (templateId: string, buildId: string, number = 0, tags = ['default']) => ({
  ...{ buildId, templateId, tags, cpuCount: 2, memoryMiB: 512, diskMiB: 1024 },
  nowUs: startUs + number,
});

onEachDatabase(database => {
  test('names: one stands for one template, its oldest is the first, and what is public is listed by it', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    const name = (alias: string, templateId: string, namespace: string, number: number) =>
      nameTemplate(db, { alias, templateId, namespace, nowUs: startUs + number });
    await name('web', mine.templateId, 'mine', 1);
    await name('app', mine.templateId, 'mine', 0);
    await name('web', theirs.templateId, 'theirs', 0);
    await expect(name('web', theirs.templateId, 'mine', 2)).rejects.toThrow();
    expect((await templateByName(db, 'mine', 'web'))?.templateId).toBe(mine.templateId);
    expect(await templateByName(db, '', 'web')).toBeNull();
    expect(await firstAlias(db, mine.templateId)).toBe('app');
    expect(await namesOf(db, mine.templateId)).toEqual([
      { namespace: 'mine', alias: 'app' },
      { namespace: 'mine', alias: 'web' },
    ]);
    await name('base', theirs.templateId, '', 3);
    expect(await listDefaultTemplates(db, 9)).toEqual([]);
    await setTemplatePublic(db, theirs.templateId, true, startUs + 4);
    expect(await listDefaultTemplates(db, 9)).toMatchObject([{ templateId: theirs.templateId, public: true }]);
    await unnameTemplate(db, { namespace: '', alias: 'base' });
    expect(await listDefaultTemplates(db, 9)).toEqual([]);
  });

  test('tags select their newest ready build; what is given again is history, and history has an end', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const { templateId } = mine;
    for (const number of [1, 2, 3]) await putReady(db, templateId, `b${number}`, 'stable', number);
    await insertBuild(db, waiting(templateId, 'b4', 4, ['stable']));
    expect((await taggedBuild(db, templateId, 'stable'))?.buildId).toBe('b3');
    // Back to an older one.
    await putTags(db, { templateId, buildId: 'b1', tags: ['stable', 'old_1'], nowUs: startUs + 5 });
    expect((await taggedBuild(db, templateId, 'stable'))?.buildId).toBe('b1');
    const assigned = await listAssignments(db, templateId, 'stable', { limit: 9 });
    expect(assigned.map(({ buildId }) => buildId)).toEqual(['b1', 'b3', 'b2']);
    const after = { atUs: startUs + 3, id: 'b3' };
    expect(await listAssignments(db, templateId, 'stable', { after, limit: 9 })).toMatchObject([{ buildId: 'b2' }]);
    expect(await newestAssignments(db, templateId, ['stable', 'old_1'], 1)).toMatchObject([
      { buildId: 'b1' },
      { buildId: 'b1' },
    ]);
    expect(await newestAssignments(db, templateId, [], 1)).toEqual([]);
    // The newest two, and the one that it selects.
    for (const number of [6, 7]) {
      await insertBuild(db, waiting(templateId, `w${number}`, number, ['other']));
      await putTags(db, { templateId, buildId: `w${number}`, tags: ['stable'], nowUs: startUs + number }, 2);
    }
    const left = await db.selectFrom('build_tags').select('build_id').where('tag', '=', 'stable').execute();
    expect(left.map(row => row.build_id).toSorted()).toEqual(['b1', 'w6', 'w7']);
    expect((await tagNames(db, templateId)).toSorted()).toEqual(['old_1', 'other', 'stable']);
  });

  test('tags are listed by name or by their last assignment, and a sign of a pattern stands for itself', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const { templateId } = mine;
    await putReady(db, templateId, 'b1', 'v_1', 3);
    await putReady(db, templateId, 'b2', 'va1', 1);
    await putReady(db, templateId, 'b3', 'w', 2);
    await insertBuild(db, waiting(templateId, 'not yet', 9, ['later']));
    const tags = async (page: Parameters<typeof listTagUses>[2]) =>
      (await listTagUses(db, templateId, page)).map(({ tag }) => tag);
    expect(await countTags(db, templateId)).toBe(3);
    expect(await tags({ by: 'name', direction: 'desc', limit: 9 })).toEqual(['w', 'va1', 'v_1']);
    expect(await tags({ by: 'latest', direction: 'desc', limit: 9 })).toEqual(['v_1', 'w', 'va1']);
    const after = { tag: 'w', latestUs: startUs + 2 };
    expect(await tags({ by: 'latest', direction: 'desc', after, limit: 9 })).toEqual(['va1']);
    expect(await tags({ by: 'name', direction: 'asc', after: { tag: 'v_1', latestUs: 0 }, limit: 1 })).toEqual(['va1']);
    expect(await tags({ by: 'name', direction: 'asc', search: 'v_', limit: 9 })).toEqual(['v_1']);
    expect((await tagsOf(db, templateId)).map(({ tag, buildId }) => [tag, buildId])).toEqual([
      ['v_1', 'b1'],
      ['w', 'b3'],
      ['va1', 'b2'],
    ]);
    await removeTags(db, templateId, ['v_1', 'w']);
    expect((await tagNames(db, templateId)).toSorted()).toEqual(['later', 'va1']);
  });

  test('templates are listed newest first with their newest builds, and go with all that they had', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    const { teamId } = mine;
    const put = (templateId: string, number: number, kind: 'template' | 'snapshot' = 'template') =>
      insertTemplate(db, { templateId, teamId, kind, public: false, nowUs: startUs + number });
    await put('second', 1);
    await put('third', 2);
    await put('a-snapshot', 3, 'snapshot');
    const page = await listTemplates(db, teamId, { limit: 2 });
    expect(page.map(({ templateId }) => templateId)).toEqual(['third', 'second']);
    const after = { atUs: startUs + 1, id: 'second' };
    expect(await listTemplates(db, teamId, { after, limit: 2 })).toMatchObject([{ templateId: mine.templateId }]);
    await putReady(db, 'second', 'r1', 'default', 4);
    await insertBuild(db, waiting('second', 'w1', 5));
    const newest = await newestBuilds(db, ['second', 'third']);
    expect([newest.get('second')?.newest.buildId, newest.get('second')?.ready?.buildId]).toEqual(['w1', 'r1']);
    expect(newest.has('third')).toBe(false);
    expect([...(await layersByTemplate(db, teamId))]).toEqual([['second', new Set(ready('second', 'r1').layers)]]);
    expect((await layersByTemplate(db, theirs.teamId)).size).toBe(0);
    expect((await listBuilds(db, 'second', { limit: 9 })).map(({ buildId }) => buildId)).toEqual(['w1', 'r1']);
    expect(await readyBuild(db, 'second', 'w1')).toBeNull();
    expect(await readyBuild(db, 'third', 'r1')).toBeNull();
    expect((await readyBuild(db, 'second', 'r1'))?.status).toBe('ready');
    await deleteTemplateRow(db, 'second');
    expect([await findBuild(db, 'r1'), await findBuild(db, 'w1')]).toEqual([null, null]);
    expect(await countKept(db, teamId)).toEqual({ templates: 2, builds: 0, snapshots: 0 });
    expect(await countKept(db, theirs.teamId)).toEqual({ templates: 1, builds: 0, snapshots: 0 });
  });

  test('steps: the outcome that was recorded last counts, for the team that has made it, while it is used', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    const step = { teamId: mine.teamId, key: 'k1' };
    expect(await findStep(db, step, startUs)).toBeNull();
    await putSteps(
      db,
      mine.teamId,
      [
        { key: 'k1', layer: 'sha256:a' },
        { key: 'k2', layer: null },
      ],
      startUs,
    );
    await putSteps(db, mine.teamId, [{ key: 'k1', layer: 'sha256:b' }], startUs + 1);
    expect(await findStep(db, step, startUs + 5)).toEqual({ layer: 'sha256:b' });
    expect(await findStep(db, { ...step, teamId: theirs.teamId }, startUs + 5)).toBeNull();
    // A requested one stays, and one that nobody has used goes.
    await pruneSteps(db, startUs + 4);
    expect(await findStep(db, step, startUs + 6)).toEqual({ layer: 'sha256:b' });
    expect(await findStep(db, { ...step, key: 'k2' }, startUs + 6)).toBeNull();
    await forgetStep(db, step);
    expect(await findStep(db, step, startUs + 7)).toBeNull();
  });

  test('builds: a node has those that it was told, and one process follows each', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    for (const id of ['a', 'b']) {
      await insertBuild(db, waiting(mine.templateId, id));
      expect(await placeOfBuild(db, id)).toBeNull();
      await putPlaceOfBuild(db, id, { nodeId: 'node-1', sealedPlan: 'sealed' });
    }
    await moveBuild(db, 'a', 'waiting', 'building', startUs + 1);
    expect(await countWaiting(db, mine.teamId)).toBe(1);
    const { teamId } = mine;
    const first = { nodeId: 'node-1', teamId, sealedPlan: 'sealed', nodesLost: 0, logOffset: 0 };
    expect(await placeOfBuild(db, 'a')).toEqual(first);
    expect(await runningBuildsByNode(db)).toEqual(new Map([['node-1', 1]]));
    // A build whose node was lost continues once, after the log line that says so; one that has not begun does not.
    const notice = { timestampMs: 1, level: 'warn', message: 'lost' } as const;
    await appendBuildLog(db, 'a', 0, [notice, notice]);
    const [from, to] = ['node-1', 'node-2'];
    expect(await moveBuildOn(db, { buildId: 'a', from, to }, notice)).toBe(true);
    expect(await moveBuildOn(db, { buildId: 'a', from, to }, notice)).toBe(false);
    expect(await moveBuildOn(db, { buildId: 'b', from, to }, notice)).toBe(false);
    expect(await placeOfBuild(db, 'a')).toEqual({ ...first, nodeId: to, nodesLost: 1, logOffset: 3 });
    expect([await buildLogLength(db, 'a'), await buildLogLength(db, 'b')]).toEqual([3, 0]);
    await enterReplica(db, { replicaId: 'one', name: 'one' }, startUs + 10);
    expect(await claimBuild(db, 'a', { ownId: 'one', nowUs: startUs })).toBe(true);
    expect(await claimBuild(db, 'a', { ownId: 'two', nowUs: startUs + 9 })).toBe(false);
    expect(await claimBuild(db, 'a', { ownId: 'one', nowUs: startUs + 9 })).toBe(true);
    expect(await claimBuild(db, 'a', { ownId: 'two', nowUs: startUs + 10 })).toBe(true);
  });

  test('retention: of what failed the newest stay, and of what is ready whatever a tag or a sandbox needs', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const { templateId, teamId } = mine;
    for (const number of [1, 2, 3, 4]) {
      await insertBuild(db, waiting(templateId, `f${number}`, number));
      await appendBuildLog(db, `f${number}`, 0, [{ timestampMs: 1, level: 'info', message: 'line' }]);
      await failBuilds(db, [`f${number}`], { message: 'broke' }, startUs + number);
    }
    const failed = async () => (await buildsInStatus(db, ['error'])).map(({ buildId }) => buildId).toSorted();
    expect(await neverStarted(db, startUs + 9, 9)).toEqual([]);
    await pruneBuildLogs(db, teamId, { beforeUs: startUs + 2, newest: 2 });
    const lengths = await Promise.all([1, 2, 3, 4].map(number => buildLogLength(db, `f${number}`)));
    expect(lengths).toEqual([0, 0, 1, 1]);
    await pruneFailedBuilds(db, teamId, { beforeUs: startUs + 2, newest: 9 });
    expect(await failed()).toEqual(['f2', 'f3', 'f4']);
    await pruneFailedBuilds(db, teamId, { beforeUs: startUs, newest: 2 });
    expect(await failed()).toEqual(['f3', 'f4']);
    expect(await removeOldestFailed(db, teamId, 1)).toBe(1n);
    expect(await failed()).toEqual(['f4']);
    for (const number of [1, 2, 3, 4]) await putReady(db, templateId, `r${number}`, 'default', number);
    await putTags(db, { templateId, buildId: 'r2', tags: ['stable'], nowUs: startUs });
    await pruneSuperseded(db, teamId, 1);
    // r4 by its tag, r2 by another one, r3 as the newest of the superseded ones.
    expect((await buildsInStatus(db, ['ready'])).map(({ buildId }) => buildId).toSorted()).toEqual(['r2', 'r3', 'r4']);
    await insertBuild(db, waiting(templateId, 'never', 0));
    expect(await neverStarted(db, startUs + 1, 9)).toEqual(['never']);
  });

  test('layers go to the store build by build, the oldest first', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    await putReady(db, mine.templateId, 'b', 'default', 2);
    await putReady(db, mine.templateId, 'a', 'other', 3);
    await putReady(db, mine.templateId, 'c', 'third', 3);
    const beginning = { createdAtUs: -1, buildId: '' };
    const idsBehind = async (after: typeof beginning) =>
      (await buildsToStore(db, 9, after)).map(({ buildId }) => buildId);
    const [oldest] = await buildsToStore(db, 1, beginning);
    expect(oldest).toEqual({ buildId: 'b', createdAtUs: startUs + 2, layers: ['sha256:b'] });
    expect(await idsBehind(oldest!)).toEqual(['a', 'c']);
    // Of the same moment.
    expect(await idsBehind({ createdAtUs: startUs + 3, buildId: 'a' })).toEqual(['c']);
    await recordLayersStored(db, 'b');
    expect(await idsBehind(beginning)).toEqual(['a', 'c']);
  });

  test('snapshots: each tag once, as its newest build has it, and their memory is in use', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    const { teamId } = mine;
    await insertTemplate(db, { templateId: 's', teamId, kind: 'snapshot', public: false, nowUs: startUs });
    const snapshot = (buildId: string, tag: string, sandboxId: string, number: number, memory?: string) =>
      addReadyBuild(db, ready('s', buildId, [], memory), { sandboxId, tag, nowUs: startUs + number });
    await snapshot('a', 'default', 'one', 1, 'memory of a');
    await snapshot('b', 'default', 'two', 2);
    await snapshot('c', 'other', 'one', 3);
    await putReady(db, mine.templateId, 'no snapshot', 'default', 4);
    const ids = async (filter: object, page: Parameters<typeof listSnapshots>[2] = { limit: 9 }) =>
      (await listSnapshots(db, { teamId, ...filter }, page)).map(({ buildId }) => buildId);
    expect(await ids({})).toEqual(['c', 'b']);
    expect(await ids({ sandboxId: 'one' })).toEqual(['c']);
    expect(await ids({ tag: 'default' })).toEqual(['b']);
    expect(await ids({ templateId: 'none' })).toEqual([]);
    expect(await ids({}, { after: { atUs: startUs + 3, id: 'c' }, limit: 9 })).toEqual(['b']);
    expect(await listSnapshots(db, { teamId: theirs.teamId }, { limit: 9 })).toEqual([]);
    expect(await memorySnapshotsInUse(db)).toEqual(['memory of a']);
  });
});
