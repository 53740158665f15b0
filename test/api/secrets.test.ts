import { expect, test } from 'bun:test';
import { newUuid } from '../../src/base/id.ts';
import { readSecret, secretValue } from '../../src/api/secret/rules/secrets.ts';
import { onEachDatabase } from './databases.ts';
import { Platform } from './platform.ts';

type SecretBody = {
  secretID: string;
  name: string;
  currentVersion: number;
  metadata: Record<string, string>;
  createdAt: string;
  updatedAt: string;
};

onEachDatabase(database => {
  test('a secret is made, read by ID and name, changed and deleted, and its value is never told', async () => {
    await using platform = await Platform.start({ database });
    const value = 'the value that nobody reads';
    const answers = [await platform.call('POST', '/secrets', { name: 'API_Token', value, metadata: { env: 'test' } })];
    const secret = answers[0]?.body as SecretBody;
    expect(answers[0]?.status).toBe(201);
    expect(secret).toMatchObject({ name: 'api_token', currentVersion: 1, metadata: { env: 'test' } });
    expect(secret.secretID).toMatch(/^sec_[a-z0-9]+$/);
    for (const path of [secret.secretID, 'api_token', 'API_TOKEN']) {
      const read = await platform.call('GET', `/secrets/${path}`);
      expect(read).toMatchObject({ status: 200, body: secret });
      answers.push(read);
    }
    const changed = await platform.call('POST', `/secrets/${secret.secretID}`, { value: `${value} 2` });
    expect(changed).toMatchObject({
      status: 200,
      body: { currentVersion: 2, metadata: { env: 'test' }, createdAt: secret.createdAt },
    });
    const renewed = await platform.call('POST', '/secrets/api_token', { value: `${value} 3`, metadata: {} });
    expect(renewed.body).toMatchObject({ currentVersion: 3, metadata: {} });
    const listed = await platform.call('GET', '/secrets');
    expect(listed.body).toEqual([renewed.body]);
    answers.push(changed, renewed, listed);

    expect(secretValue(platform.api.parts.seed, await readSecret(platform.store.db, platform.team, 'api_token'))).toBe(
      `${value} 3`,
    );
    const rows = JSON.stringify([
      await platform.store.db.selectFrom('secrets').selectAll().execute(),
      await platform.store.db.selectFrom('audit_log').selectAll().execute(),
    ]);
    expect(rows).not.toContain(value);
    for (const { body, headers } of answers) {
      expect(JSON.stringify(body)).not.toContain(value);
      expect(headers.get('cache-control')).toBe('no-store');
    }
    expect((await platform.call('DELETE', '/secrets/api_token')).status).toBe(204);
    const gone = await platform.call('GET', `/secrets/${secret.secretID}`);
    expect([gone.status, gone.headers.get('cache-control')]).toEqual([404, 'no-store']);
    expect((await platform.call('DELETE', `/secrets/${secret.secretID}`)).status).toBe(404);
    expect((await platform.call('POST', `/secrets/${secret.secretID}`, { value })).status).toBe(404);
  });

  test('names are one per team, in any case, and rules are named when they are broken', async () => {
    await using platform = await Platform.start({ database });
    const other = await platform.otherTeam();
    const create = (body: unknown, key = platform.key) => platform.call('POST', '/secrets', body, { 'x-api-key': key });
    expect((await create({ name: 'a', value: 'x' })).status).toBe(201);
    expect((await create({ name: 'A', value: 'x' })).status).toBe(409);
    expect((await create({ name: 'a', value: 'x' }, other.key)).status).toBe(201);
    const both = await Promise.all([1, 2, 3, 4].map(() => create({ name: 'race', value: 'x' })));
    expect(both.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409]);
    const long = 'x'.repeat(1025);
    const refusals: Array<[body: object, names: string]> = [
      [{ value: 'x' }, 'name'],
      [{ name: '', value: 'x' }, 'name'],
      [{ name: 'a b', value: 'x' }, 'name'],
      [{ name: 'sec_x', value: 'x' }, 'name'],
      [{ name: 'x'.repeat(129), value: 'x' }, 'name'],
      [{ name: 'b' }, 'value'],
      [{ name: 'b', value: '' }, 'value'],
      [{ name: 'b', value: 5 }, 'value'],
      [{ name: 'b', value: 'x'.repeat(65_537) }, 'value'],
      [{ name: 'b', value: 'x', metadata: { a: 1 } }, 'metadata.a'],
      [{ name: 'b', value: 'x', metadata: { a: long } }, 'metadata["a"]'],
      [{ name: 'b', value: 'x', metadata: { [long]: 'a' } }, 'metadata'],
      [
        { name: 'b', value: 'x', metadata: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`k${i}`, 'v'])) },
        'metadata',
      ],
      [
        {
          name: 'b',
          value: 'x',
          metadata: Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`k${i}`, 'v'.repeat(1000)])),
        },
        'metadata',
      ],
    ];
    for (const [body, names] of refusals) {
      expect(await create(body)).toMatchObject({
        status: 400,
        body: { code: 400, message: expect.stringContaining(names) },
      });
    }
    expect((await platform.call('GET', '/secrets/b')).status).toBe(404);
  });

  test('changes at the same time are versions one after the other; pages hold every secret once', async () => {
    await using platform = await Platform.start({ database });
    for (let i = 0; i < 5; i++) await platform.call('POST', '/secrets', { name: `s${i}`, value: 'x' });
    const versions = await Promise.all([1, 2, 3].map(() => platform.call('POST', '/secrets/s0', { value: 'y' })));
    expect(versions.map(({ body }) => (body as SecretBody).currentVersion).toSorted()).toEqual([2, 3, 4]);
    const seen: string[] = [];
    for (let token: string | null = ''; token !== null;) {
      const page = await platform.call('GET', `/secrets?limit=2${token && `&nextToken=${token}`}`);
      seen.push(...(page.body as SecretBody[]).map(({ name }) => name));
      token = page.headers.get('x-next-token');
    }
    expect(seen).toEqual(['s4', 's3', 's2', 's1', 's0']);
  });

  test('a page has a hundred secrets where nobody asks for fewer, and nobody gets more', async () => {
    await using platform = await Platform.start({ database });
    for (let i = 0; i < 101; i++)
      expect((await platform.call('POST', '/secrets', { name: `s${i}`, value: 'x' })).status).toBe(201);
    for (const path of ['/secrets', '/secrets?limit=100']) {
      const page = await platform.call('GET', path);
      expect(page.body).toHaveLength(100);
      const rest = await platform.call('GET', `/secrets?nextToken=${page.headers.get('x-next-token')}`);
      expect(rest.body).toMatchObject([{ name: 's0' }]);
      expect(rest.headers.get('x-next-token')).toBeNull();
    }
    for (const limit of [0, 101, 1.5]) expect((await platform.call('GET', `/secrets?limit=${limit}`)).status).toBe(400);
    expect((await platform.call('GET', '/secrets?nextToken=x')).status).toBe(400);
  });

  test('what is as long as it may be is taken', async () => {
    await using platform = await Platform.start({ database });
    const metadata = Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`k${i}`, 'v'.repeat(200)]));
    const longest = { k: 'v'.repeat(1024), ['x'.repeat(128)]: '' };
    const bodies = [
      { name: 'x'.repeat(128), value: 'é'.repeat(32_768), metadata },
      { name: ' Sec-x ', value: 'x', metadata: longest },
    ];
    for (const body of bodies) expect((await platform.call('POST', '/secrets', body)).status).toBe(201);
    expect((await platform.call('GET', '/secrets/sec-x')).body).toMatchObject({ metadata: longest });
  });

  test('a value opens with the seed and for the secret and team that it was sealed for', async () => {
    await using platform = await Platform.start({ database });
    await platform.call('POST', '/secrets', { name: 'a', value: 'the value' });
    const secret = await readSecret(platform.store.db, platform.team, 'A ');
    const { seed } = platform.api.parts;
    expect(secretValue(seed, secret)).toBe('the value');
    for (const other of [{ secretId: 'sec_other' }, { teamId: newUuid() }])
      expect(() => secretValue(seed, { ...secret, ...other })).toThrow();
    expect(() => secretValue(new Uint8Array(32), secret)).toThrow();
  });
});
