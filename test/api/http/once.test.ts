import { expect, test } from 'bun:test';
import { AtollError } from '../../../src/base/error.ts';
import { idempotencyBounds } from '../../../src/protocol/api/sandbox.ts';
import { reconcileKeys } from '../../../src/api/sandbox/reconcilers/idempotency.ts';
import { waitFor } from '../../support/process.ts';
import { onEachDatabase } from '../databases.ts';
import { call, Platform } from '../platform.ts';

/** Every operation besides creates that takes a key, requested for one thing and for another. */
const operationsOn = (sandboxID: string) => [
  { path: `/sandboxes/${sandboxID}/fork`, asked: { count: 2, timeout: 600 }, other: { count: 1, timeout: 600 } },
  { path: `/sandboxes/${sandboxID}/snapshots`, asked: {}, other: { name: 'kept' } },
  { path: '/volumes', asked: { name: 'notes' }, other: { name: 'words' } },
  { path: '/v3/templates', asked: { name: 'app' }, other: { name: 'app', cpuCount: 2 } },
];

/** How many there are of each, in the order of the operations. */
async function counts(platform: Platform): Promise<number[]> {
  const list = async (path: string) => (await platform.call('GET', path)).body as Record<string, unknown>[];
  const builds = (await list('/templates')).map(({ aliases, buildCount }) =>
    (aliases as string[]).includes('app') ? Number(buildCount) : 0,
  );
  return [
    (await list('/v2/sandboxes')).length - 1,
    (await list('/snapshots')).length,
    (await list('/volumes')).length,
    builds.reduce((sum, count) => sum + count, 0),
  ];
}

onEachDatabase(database => {
  const start = () => Platform.start({ database, features: { volumes: true } });
  const withKey = (platform: Platform, path: string, body: object, key = 'once', headers = {}) =>
    platform.call('POST', path, body, { 'idempotency-key': key, ...headers });

  test('the same request with the same key is carried out once, and answered alike', async () => {
    await using platform = await start();
    const { sandboxID } = await platform.createSandbox();
    for (const { path, asked, other } of operationsOn(sandboxID)) {
      const answers = await Promise.all(Array.from({ length: 3 }, () => withKey(platform, path, asked)));
      const [first] = answers;
      expect(first!.status).toBeLessThan(300);
      for (const { status, body } of answers) expect([status, body]).toEqual([first!.status, first!.body]);
      await platform.restart();
      expect((await withKey(platform, path, asked)).body).toEqual(first!.body);
      expect(await withKey(platform, path, other)).toMatchObject({
        status: 409,
        body: { error_code: 'idempotency_request_mismatch' },
      });
    }
    // A key counts for each operation separately.
    expect(await counts(platform)).toEqual([2, 1, 1, 1]);
    // Tokens of forks and volumes are not stored as plain text.
    const rows = await platform.store.db.selectFrom('repeated_requests').select('sealed_answer').execute();
    expect(rows).toHaveLength(4);
    for (const { sealed_answer } of rows) expect(sealed_answer).toStartWith('v1.');

    const { parts } = platform.api;
    await reconcileKeys({ db: parts.db, clock: () => parts.clock() + (idempotencyBounds.keptHours + 1) * 3600e6 });
    expect((await withKey(platform, '/v3/templates', { name: 'app' })).status).toBe(202);
    expect(await counts(platform)).toEqual([2, 1, 1, 2]);
  });

  test('where it is not known what became of a request, it is not done again', async () => {
    await using platform = await start();
    const { sandboxID } = await platform.createSandbox();
    for (const { path, asked } of operationsOn(sandboxID)) await withKey(platform, path, asked);
    const before = await counts(platform);
    // The state after a process was killed between the effect and the answer.
    await platform.store.db.updateTable('repeated_requests').set({ sealed_answer: null }).execute();
    await platform.restart();
    for (const { path, asked } of operationsOn(sandboxID))
      expect(await withKey(platform, path, asked)).toMatchObject({
        status: 409,
        body: { error_code: 'idempotency_outcome_unknown' },
      });
    expect(await counts(platform)).toEqual(before);
    expect((await withKey(platform, '/v3/templates', { name: 'app' }, 'twice')).status).toBe(202);

    platform.node.before = async called => {
      if (called === 'snapshot') throw new Error('broken');
    };
    const path = `/sandboxes/${(await platform.createSandbox()).sandboxID}/snapshots`;
    expect((await withKey(platform, path, {}, 'broken')).status).toBe(500);
    expect((await withKey(platform, path, {}, 'broken')).body).toMatchObject({
      error_code: 'idempotency_outcome_unknown',
    });
  });

  test('what is refused leaves the key free, and another team has keys of its own', async () => {
    await using platform = await start();
    const { sandboxID } = await platform.createSandbox();
    const path = `/sandboxes/${sandboxID}/snapshots`;
    let isFull = true;
    platform.node.before = async called => {
      if (isFull && called === 'snapshot') throw new AtollError('no_space', 'full');
    };
    expect((await withKey(platform, path, {})).status).toBe(507);
    isFull = false;
    await waitFor('the sandbox runs on', async () => (await withKey(platform, path, {})).status === 201);
    expect((await counts(platform))[1]).toBe(1);
    const { key } = await platform.otherTeam();
    const volume = (headers = {}) => withKey(platform, '/volumes', { name: 'notes' }, 'once', headers);
    const ids = [await volume(), await volume({ 'x-api-key': key })].map(
      ({ body }) => (body as { volumeID: string }).volumeID,
    );
    expect(new Set(ids).size).toBe(2);
  });

  if (database.name === 'PostgreSQL')
    test('two api processes that are asked with one key at the same time do it once', async () => {
      await using platform = await start();
      await using replica = await platform.replica();
      const { sandboxID } = await platform.createSandbox();
      const [fork] = operationsOn(sandboxID);
      const headers = { 'x-api-key': platform.key, 'idempotency-key': 'once' };
      const answers = await Promise.all(
        Array.from({ length: 6 }, (_, n) =>
          call(n % 2 === 0 ? platform.socketPath : replica.socketPath, 'POST', fork!.path, fork!.asked, headers),
        ),
      );
      for (const answer of answers) expect([answer.status, answer.body]).toEqual([201, answers[0]!.body]);
      expect(await counts(platform)).toEqual([2, 0, 0, 0]);
    });
});
