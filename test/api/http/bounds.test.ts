import { expect, test } from 'bun:test';
import { reconcileBuildRetention } from '../../../src/api/build/reconcilers/retention.ts';
import { buildRetention, pruneLogs } from '../../../src/api/build/rules/retention.ts';
import { appendBuildLog, buildLogLength } from '../../../src/api/build/store/log.ts';
import { insertBuild, moveBuild, publishBuild } from '../../../src/api/build/store/write.ts';
import { createAccessToken } from '../../../src/api/credential/rules/access-tokens.ts';
import { createApiKey } from '../../../src/api/credential/rules/api-keys.ts';
import { recordLocalChange, reconcileAudit } from '../../../src/api/event/rules/audit.ts';
import { pruneMetrics } from '../../../src/api/metrics/reconcilers/team.ts';
import { reconcileKeys } from '../../../src/api/sandbox/reconcilers/idempotency.ts';
import { createSecret } from '../../../src/api/secret/rules/secrets.ts';
import { beginSession } from '../../../src/api/session/rules/begin.ts';
import { listSessions } from '../../../src/api/session/store/sessions.ts';
import { addMember, createUser } from '../../../src/api/team/rules/provision-user.ts';
import { putTags } from '../../../src/api/template/store/put-tags.ts';
import { taggedBuild } from '../../../src/api/template/store/resolve.ts';
import { idempotencyBounds } from '../../../src/protocol/api/sandbox.ts';
import { buildBounds } from '../../../src/protocol/api/template-build.ts';
import type { Db } from '../../../src/api/database/db.ts';
import { onEachDatabase } from '../databases.ts';
import { endlessBuilder } from '../fake-builder.ts';
import { type Answer, Platform } from '../platform.ts';
import { startUs, storeScene } from '../store/scene.ts';

// Everything that a team can accumulate in the database has a bound: beyond it, new things are refused, and records of
// the past are removed by age and number.

const hourUs = 3_600_000_000;
const refusal = (answer: Answer) => [answer.status, (answer.body as { message: string }).message];

const build = (templateId: string, buildId: string, tags: string[], nowUs = startUs) => ({
  ...{ buildId, templateId, tags, nowUs },
  ...{ cpuCount: 2, memoryMiB: 512, diskMiB: 1024 },
});

/** A build that is ready or has failed. */
async function endedBuild(
  db: Db,
  [templateId, buildId]: [string, string],
  { tags, atUs, ready = true }: { tags: string[]; atUs: number; ready?: boolean },
): Promise<void> {
  await insertBuild(db, build(templateId, buildId, tags, atUs));
  await moveBuild(db, buildId, 'waiting', 'building', atUs);
  const config = { defaultUser: 'user', defaultWorkdir: '', buildEnv: {} };
  await publishBuild(db, buildId, { layers: [], config, agentVersion: 'v', diskMiB: 1 }, atUs);
  if (!ready) await db.updateTable('builds').set({ status: 'error' }).where('build_id', '=', buildId).execute();
}

const buildIds = async (db: Db) =>
  (await db.selectFrom('builds').select('build_id').orderBy('build_id').execute()).map(row => row.build_id);

onEachDatabase(database => {
  test('sandboxes: a team has no more than it may, paused ones included', async () => {
    await using platform = await Platform.start({ database, limits: { sandboxes: 2 } });
    const { sandboxID } = await platform.createSandbox();
    expect((await platform.call('POST', `/sandboxes/${sandboxID}/pause`)).status).toBe(204);
    await platform.createSandbox();
    const refused = await platform.call('POST', '/v2/sandboxes', { templateID: 'base' });
    expect(refusal(refused)).toEqual([429, expect.stringContaining('(sandboxes)')]);
    expect((await platform.call('GET', '/limits')).body).toMatchObject({
      limits: { sandboxes: 2 },
      taken: { sandboxes: 2, concurrentSandboxes: 1, templates: 1, builds: 1, snapshots: 0 },
    });
    expect((await platform.call('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
    await platform.createSandbox();
  });

  test('templates, builds and snapshots: one more than the team may have is refused by the name of its limit', async () => {
    const limits = { templates: 2, builds: 5, snapshots: 1 };
    await using platform = await Platform.start({ database, builder: endlessBuilder(), limits });
    const register = (name: string) => platform.call('POST', '/v3/templates', { name });
    // `base` is one of the two.
    expect((await register('one:a')).status).toBe(202);
    expect(refusal(await register('two'))).toEqual([429, expect.stringContaining('(templates)')]);
    for (const tag of ['b', 'c', 'd']) expect((await register(`one:${tag}`)).status).toBe(202);
    expect(refusal(await register('one:e'))).toEqual([429, expect.stringContaining('(builds)')]);
    // A failed one makes room for another.
    const failed = await platform.store.db
      .updateTable('builds')
      .set({ status: 'error', finished_at_us: 1 })
      .where('build_id', 'in', query => query.selectFrom('build_tags').select('build_id').where('tag', '=', 'b'))
      .executeTakeFirst();
    expect(failed.numUpdatedRows).toBe(1n);
    expect((await register('one:e')).status).toBe(202);
    expect(refusal(await register('one:f'))).toEqual([429, expect.stringContaining('(builds)')]);

    const { sandboxID } = await platform.createSandbox();
    const snapshot = () => platform.call('POST', `/sandboxes/${sandboxID}/snapshots`, {});
    expect((await snapshot()).status).toBe(201);
    expect(refusal(await snapshot())).toEqual([429, expect.stringContaining('(snapshots)')]);
  });

  test('builds that wait: a team has few, and one that nobody starts fails after a day', async () => {
    await using platform = await Platform.start({ database, builder: endlessBuilder() });
    const { db } = platform.store;
    const nowUs = platform.api.parts.clock();
    const { templateID } = (await platform.call('POST', '/v3/templates', { name: 'many' })).body as {
      templateID: string;
    };
    for (let number = 1; number < buildBounds.waitingMax; number++)
      await insertBuild(db, build(templateID, crypto.randomUUID(), [`tag-${number}`], nowUs - 25 * hourUs));
    const register = () => platform.call('POST', '/v3/templates', { name: 'many:more' });
    expect(refusal(await register())).toEqual([429, expect.stringContaining('(waitingMax)')]);
    await reconcileBuildRetention(platform.api.parts);
    const waiting = await db.selectFrom('builds').select('build_id').where('status', '=', 'waiting').execute();
    expect(waiting).toHaveLength(1);
    expect((await register()).status).toBe(202);
  });

  test('tags: a template has so many, each a short history, and what a tag selects stays', async () => {
    await using platform = await Platform.start({ database });
    const tags = (first: number, count: number) => Array.from({ length: count }, (_, index) => `t${first + index}`);
    const assign = (names: string[]) => platform.call('POST', '/templates/tags', { target: 'base', tags: names });
    const { tagsMax, tagsPerTemplateMax } = buildBounds;
    for (let first = 1; first < tagsPerTemplateMax; first += tagsMax)
      expect((await assign(tags(first, Math.min(tagsMax, tagsPerTemplateMax - first)))).status).toBe(201);
    expect(refusal(await assign(['one-more']))).toEqual([429, expect.stringContaining('(tagsPerTemplateMax)')]);
    expect((await assign(tags(5, 10))).status).toBe(201);

    await using scene = await storeScene(database);
    const { db, mine } = scene;
    await endedBuild(db, [mine.templateId, 'ready'], { tags: ['x'], atUs: startUs });
    for (const [index, id] of ['a', 'b', 'c', 'd'].entries())
      await insertBuild(db, build(mine.templateId, id, ['other'], startUs + index));
    const assigned = async () =>
      (await db.selectFrom('build_tags').select('build_id').where('tag', '=', 'x').execute())
        .map(row => row.build_id)
        .toSorted();
    for (const [index, buildId] of ['a', 'b', 'c', 'd'].entries())
      await putTags(db, { templateId: mine.templateId, buildId, tags: ['x'], nowUs: startUs + 1 + index }, 2);
    expect(await assigned()).toEqual(['c', 'd', 'ready']);
    expect((await taggedBuild(db, mine.templateId, 'x'))?.buildId).toBe('ready');
  });

  test('builds that have ended go by age and number, but not what a tag selects or a sandbox was made from', async () => {
    await using platform = await Platform.start({ database });
    const { db } = platform.store;
    const { clock } = platform.api.parts;
    const base = (await buildIds(db))[0] ?? '';
    const { template_id: templateId } = await db.selectFrom('builds').select('template_id').executeTakeFirstOrThrow();
    await platform.createSandbox();
    const nowUs = clock();
    // `base` is what the sandbox was made from; from now on another build has its tag.
    for (const [index, id] of ['r1', 'r2', 'r3', 'r4'].entries())
      await endedBuild(db, [templateId, id], { tags: ['default'], atUs: nowUs + index });
    await endedBuild(db, [templateId, 'r0'], { tags: ['kept'], atUs: nowUs - hourUs });
    for (const [index, id] of ['f1', 'f2', 'f3'].entries())
      await endedBuild(db, [templateId, id], { tags: ['default'], atUs: nowUs + index, ready: false });
    await endedBuild(db, [templateId, 'f0'], { tags: ['default'], atUs: nowUs - 31 * 24 * hourUs, ready: false });
    const kept = { ...buildRetention, failedPerTeam: 2, supersededPerTemplate: 1 };
    await reconcileBuildRetention({ clock, db }, kept);
    expect(await buildIds(db)).toEqual([base, 'f2', 'f3', 'r0', 'r3', 'r4'].toSorted());
    await reconcileBuildRetention({ clock, db }, { ...kept, failedPerTeam: 10, supersededPerTemplate: 10 });
    expect(await buildIds(db)).toEqual([base, 'f2', 'f3', 'r0', 'r3', 'r4'].toSorted());
  });

  test('logs of builds go by age and number of builds, those of running builds stay', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    const lines = Array.from({ length: 3 }, (_, timestampMs) => ({
      timestampMs,
      level: 'info' as const,
      message: 'x',
    }));
    for (const [index, id] of ['b1', 'b2', 'b3'].entries())
      await endedBuild(db, [mine.templateId, id], { tags: [id], atUs: startUs + index });
    await endedBuild(db, [theirs.templateId, 'other'], { tags: ['x'], atUs: startUs });
    await insertBuild(db, build(mine.templateId, 'running', ['y']));
    const all = ['b1', 'b2', 'b3', 'other', 'running'];
    for (const id of all) await appendBuildLog(db, id, 0, lines);
    const lengths = () => Promise.all(all.map(id => buildLogLength(db, id)));
    const clock = () => startUs + 10;
    await pruneLogs({ clock, db }, mine.teamId, { logDays: 1, logsPerTeam: 2 });
    expect(await lengths()).toEqual([0, 3, 3, 3, 3]);
    await pruneLogs({ clock: () => startUs + 25 * hourUs, db }, mine.teamId, { logDays: 1, logsPerTeam: 2 });
    expect(await lengths()).toEqual([0, 0, 0, 3, 3]);
  });

  test('history of one team goes beyond its number, that of others and the newest stay', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    const clock = () => startUs + hourUs;
    for (const teamId of [mine.teamId, theirs.teamId, null])
      for (let number = 0; number < 5; number++) {
        const command = { operation: 'cli.test', account: 'root', atUs: startUs + (number >> 1), teamId } as const;
        await recordLocalChange(db, command, { target: `${number}` });
      }
    const old = { operation: 'cli.test', account: 'root', atUs: 1, teamId: theirs.teamId } as const;
    await recordLocalChange(db, old, { target: 'old' });
    await reconcileAudit({ clock, db }, 3);
    const entries = await db.selectFrom('audit_log').select(['team_id', 'at_us']).execute();
    for (const teamId of [mine.teamId, theirs.teamId, null]) {
      const own = entries.filter(entry => entry.team_id === teamId).map(entry => entry.at_us - startUs);
      expect(own.toSorted()).toEqual([1, 1, 2]);
    }

    const past = Array.from({ length: 4 }, (_, number) => ({
      ...{ sandbox_id: `s${number}`, team_id: mine.teamId, node_id: 'n', ended_at_us: startUs + number },
    }));
    await db.insertInto('past_sandboxes').values(past).execute();
    await pruneMetrics({ clock, db }, { teamDays: 14, pastSandboxHours: 24 }, 2);
    const left = await db.selectFrom('past_sandboxes').select('sandbox_id').orderBy('sandbox_id').execute();
    expect(left.map(row => row.sandbox_id)).toEqual(['s2', 's3']);

    const keys = [mine.teamId, theirs.teamId].flatMap(team_id =>
      Array.from({ length: 4 }, (_, number) => ({
        ...{ team_id, idempotency_key: `k${number}`, request_digest: '', sandbox_id: 's', answer_json: '{}' },
        ...{ answered: 1 as const, created_at_us: startUs + (team_id === mine.teamId ? number : 0) },
      })),
    );
    await db.insertInto('idempotency_keys').values(keys).execute();
    const keysOf = async (teamId: string) =>
      (await db.selectFrom('idempotency_keys').select('idempotency_key').where('team_id', '=', teamId).execute())
        .map(row => row.idempotency_key)
        .toSorted();
    await reconcileKeys({ clock, db }, 3);
    expect(await keysOf(mine.teamId)).toEqual(['k1', 'k2', 'k3']);
    expect(await keysOf(theirs.teamId)).toHaveLength(3);
    await reconcileKeys({ clock: () => startUs + (idempotencyBounds.keptHours + 1) * hourUs, db });
    expect(await keysOf(mine.teamId)).toEqual([]);
  });

  test('keys, tokens, members, users and secrets: of two that come at once for the last place, one is refused', async () => {
    await using platform = await Platform.start({ database });
    const { parts } = platform.api;
    const { team } = platform;
    const atOnce = async (make: (number: number) => Promise<unknown>) => {
      const made = await Promise.allSettled([1, 2].map(make));
      const refused = made.flatMap(result => (result.status === 'rejected' ? [result.reason as { code: string }] : []));
      expect(refused.map(({ code }) => code)).toEqual(['rate_limited']);
    };
    const { user } = await platform.user();
    const { user: another } = await platform.user();
    // One key is the platform's own; another belongs to the user's first token.
    await atOnce(number => createApiKey(parts, team, `key ${number}`, null, 2));
    await atOnce(number => createAccessToken(parts, user, `token ${number}`, { tokensMax: 2 }));
    await atOnce(number => addMember(parts, team, number === 1 ? user : another, 'viewer', 1));
    await atOnce(number => createSecret(parts, team, { name: `secret-${number}`, value: 'x' }, 1));
    await expect(createUser(parts, { email: null, name: 'one more' }, 2)).rejects.toMatchObject({
      code: 'rate_limited',
    });
    await expect(createApiKey(parts, team, 'made by listing teams')).rejects.toMatchObject({ code: 'invalid' });
  });

  test('sessions: beyond a hundred of a user the oldest ends, and is let in no more', async () => {
    await using platform = await Platform.start({ database });
    const { parts } = platform.api;
    const { user } = await platform.user(platform.team);
    const who = { userId: user.userId, isOperator: false };
    const from = { address: '203.0.113.1', userAgent: 'test' };
    let nowUs = parts.clock();
    const begin = () => beginSession({ ...parts, clock: () => nowUs++ }, who, from);
    const first = await begin();
    expect(await parts.credentials.session(first.session.digest)).not.toBeNull();
    for (let number = 1; number < 100; number++) await begin();
    expect(await parts.credentials.session(first.session.digest)).not.toBeNull();
    await begin();
    expect(await listSessions(parts.db, user.userId)).toHaveLength(100);
    expect(await parts.credentials.session(first.session.digest)).toBeNull();
  });
});
