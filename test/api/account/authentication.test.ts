import { expect, test } from 'bun:test';
import { onEachDatabase } from '../databases.ts';
import { Platform, call, until } from '../platform.ts';
import { openStore } from '../../../src/api/database/database.ts';
import type { Store } from '../../../src/api/database/database.ts';

onEachDatabase(database => {
  test('a client that sends too many wrong credentials is told to wait; right ones are let in, also from its address', async () => {
    await using platform = await Platform.start({ database });
    const ask = (key: string, address: string) =>
      call(platform.socketPath, 'GET', '/sandboxes', undefined, { 'x-api-key': key, 'x-forwarded-for': address });
    const wrong = `e2b_${'0'.repeat(40)}`;
    const answers = [await ask(wrong, '203.0.113.7')];
    expect(answers[0]?.status).toBe(401);
    // All at once, so that on a slow machine the client can't save up again meanwhile.
    while (answers.length < 5_000 && answers.every(({ status }) => status === 401))
      answers.push(...(await Promise.all(Array.from({ length: 100 }, () => ask(wrong, '203.0.113.7')))));
    const refused = answers.find(({ status }) => status === 429);
    expect(refused?.headers.get('retry-after')).toBe('1');
    expect(refused?.body).toMatchObject({ code: 429, message: expect.stringContaining('wrong credentials') });
    expect((await ask(platform.key, '203.0.113.7')).status).toBe(200);
    expect((await ask(wrong, '203.0.113.8')).status).toBe(401);
  });

  test('only a key that was issued is let in, and nothing of it is stored', async () => {
    await using platform = await Platform.start({ database });
    expect(platform.key).toMatch(/^e2b_[0-9a-f]{40}$/);
    const wrong = [
      {},
      { 'x-api-key': '' },
      { 'x-api-key': 'e2b_' },
      { 'x-api-key': `e2b_${'0'.repeat(40)}` },
      { 'x-api-key': platform.key.slice(0, -1) },
      { 'x-api-key': platform.key.slice(0, -2) },
      { 'x-api-key': `${platform.key}00` },
      { 'x-api-key': platform.key.toUpperCase() },
      { 'x-api-key': platform.key.slice(4) },
      { 'x-api-key': `sk_${platform.key}` },
      { 'x-api-key': 'x'.repeat(5000) },
      { authorization: `Bearer ${platform.key}` },
      { authorization: platform.key },
    ];
    for (const headers of wrong) {
      const reason = headers['x-api-key'] ? "none of this installation's" : 'this needs the header X-API-Key';
      for (const path of ['/sandboxes', '/v2/sandboxes', '/sandboxes/x', '/templates']) {
        const answer = await call(platform.socketPath, 'GET', path, undefined, headers as Record<string, string>);
        expect({ sent: headers, status: answer.status, body: answer.body }).toMatchObject({
          status: 401,
          body: { code: 401, message: expect.stringContaining(reason) },
        });
      }
    }
    for (const headers of [
      { 'X-API-KEY': platform.key },
      { 'x-api-key': platform.key, authorization: 'Bearer junk' },
      { 'x-api-key': platform.key, 'x-admin-token': 'junk', 'x-team-id': 'junk' },
    ] as Array<Record<string, string>>) {
      expect((await call(platform.socketPath, 'GET', '/sandboxes', undefined, headers)).status).toBe(200);
    }
    const rows = JSON.stringify(await platform.store.db.selectFrom('api_keys').selectAll().execute());
    expect(rows).not.toContain(platform.key.slice(4));
    expect(JSON.parse(rows)).toMatchObject([
      { value_length: 40, mask_prefix: platform.key.slice(4, 6), mask_suffix: platform.key.slice(-4) },
    ]);
  });

  test('a request is refused before its body is looked at', async () => {
    await using platform = await Platform.start({ database });
    const answer = await call(platform.socketPath, 'POST', '/v2/sandboxes', '{', { 'x-api-key': 'e2b_00' });
    expect(answer.status).toBe(401);
  });

  test('a key that was deleted by another process, and a team that was banned, are refused from the next request on', async () => {
    await using platform = await Platform.start({ database });
    const list = async () => (await platform.call('GET', '/sandboxes')).status;
    expect(await list()).toBe(200);
    await using elsewhere = await openAgain(platform);
    await elsewhere.db.updateTable('teams').set({ banned: 1 }).execute();
    await seen(platform, list, 403);
    await elsewhere.db.updateTable('teams').set({ banned: 0 }).execute();
    await seen(platform, list, 200);
    await elsewhere.db.deleteFrom('api_keys').execute();
    await seen(platform, list, 401);
  });

  test('a blocked team reads and deletes, and changes nothing', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox();
    await platform.store.db.updateTable('teams').set({ blocked: 1 }).execute();
    platform.api.parts.credentials.clear();
    expect((await platform.call('GET', '/sandboxes')).status).toBe(200);
    expect((await platform.call('GET', `/sandboxes/${sandboxID}`)).status).toBe(200);
    expect((await platform.call('POST', '/v2/sandboxes', { templateID: 'base' })).status).toBe(403);
    expect((await platform.call('POST', `/sandboxes/${sandboxID}/timeout`, { timeout: 9 })).status).toBe(403);
    expect((await platform.call('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
  });

  test('uses of keys are written down now and then', async () => {
    await using platform = await Platform.start({ database });
    await platform.call('GET', '/sandboxes');
    await platform.api.parts.credentials.flushUses();
    const [key] = await platform.store.db.selectFrom('api_keys').selectAll().execute();
    expect(Math.abs((key?.last_used_at_us ?? 0) / 1000 - Date.now())).toBeLessThan(60_000);
  });
});

/** The same database, opened as by another process. */
function openAgain(platform: Platform): Promise<Store> {
  return openStore(platform.location);
}

/** SQLite shows a change at once; PostgreSQL reports it a moment later. */
async function seen(platform: Platform, list: () => Promise<number>, status: number): Promise<void> {
  if (platform.location.kind === 'sqlite') expect(await list()).toBe(status);
  else await until(async () => (await list()) === status);
}
