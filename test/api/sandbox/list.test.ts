import { expect, test } from 'bun:test';
import { onEachDatabase } from '../databases.ts';
import { Platform } from '../platform.ts';

type Listed = { sandboxID: string; startedAt: string; metadata?: Record<string, string> };

onEachDatabase(database => {
  test('pages hold every sandbox once, in both orders', async () => {
    await using platform = await Platform.start({ database });
    const made: string[] = [];
    for (let i = 0; i < 13; i++) made.push((await platform.createSandbox()).sandboxID);
    for (const [order, expected] of [
      ['asc', made],
      ['desc', made.toReversed()],
    ] as const) {
      for (const limit of [1, 4, 13, 100]) {
        const seen: string[] = [];
        let token: string | null = '';
        let pages = 0;
        while (token !== null) {
          const query = `limit=${limit}&order=${order}${token && `&nextToken=${token}`}`;
          const answer = await platform.call('GET', `/v2/sandboxes?${query}`);
          expect(answer.status).toBe(200);
          expect(answer.headers.get('x-total-running')).toBe('13');
          seen.push(...(answer.body as Listed[]).map(({ sandboxID }) => sandboxID));
          token = answer.headers.get('x-next-token');
          pages++;
        }
        expect(seen).toEqual(expected);
        expect(pages).toBe(Math.ceil(13 / limit));
      }
    }
    const first = await platform.call('GET', '/v2/sandboxes?limit=2&order=asc');
    const token = first.headers.get('x-next-token');
    expect((await platform.call('GET', `/v2/sandboxes?nextToken=${token}`)).status).toBe(400);
  });

  test('a page that ends between deletions goes on where it was', async () => {
    await using platform = await Platform.start({ database });
    const made: string[] = [];
    for (let i = 0; i < 6; i++) made.push((await platform.createSandbox()).sandboxID);
    const first = await platform.call('GET', '/v2/sandboxes?limit=3&order=asc');
    await platform.call('DELETE', `/sandboxes/${made[2]}`);
    await platform.call('DELETE', `/sandboxes/${made[3]}`);
    const rest = await platform.call('GET', `/v2/sandboxes?order=asc&nextToken=${first.headers.get('x-next-token')}`);
    expect((rest.body as Listed[]).map(({ sandboxID }) => sandboxID)).toEqual(made.slice(4));
  });

  test('a metadata filter matches all pairs exactly, however they are encoded', async () => {
    await using platform = await Platform.start({ database });
    const metadatas: Array<Record<string, string>> = [
      { user: 'ann', app: 'x' },
      { user: 'ann', app: 'y' },
      { user: 'ben' },
      { 'a=b&c': 'd&e=f %41+ü', user: 'ann' },
      { 'a=b': 'c' },
      { a: 'b=c' },
      { user: '50%' },
      { user: '' },
    ];
    const made: string[] = [];
    for (const metadata of metadatas) made.push((await platform.createSandbox({ metadata })).sandboxID);
    await platform.createSandbox();

    const cases: Array<[filter: Record<string, string>, matching: number[]]> = [
      [{ user: 'ann' }, [0, 1, 3]],
      [{ user: 'ann', app: 'y' }, [1]],
      [{ user: 'Ann' }, []],
      [{ user: 'an' }, []],
      [{ app: 'x', user: 'ben' }, []],
      [{ 'a=b&c': 'd&e=f %41+ü' }, [3]],
      [{ 'a=b': 'c' }, [4]],
      [{ a: 'b=c' }, [5]],
      [{ user: '50%' }, [6]],
      [{ user: '' }, [7]],
    ];
    for (const [filter, matching] of cases) {
      // As the SDKs encode it: each part, then the joined text, then the query value.
      const parts = Object.fromEntries(
        Object.entries(filter).map(([k, v]) => [encodeURIComponent(k), encodeURIComponent(v)]),
      );
      const encoded = encodeURIComponent(new URLSearchParams(parts).toString());
      for (const path of ['/v2/sandboxes?order=asc&', '/sandboxes?']) {
        const answer = await platform.call('GET', `${path}metadata=${encoded}`);
        const ids = (answer.body as Listed[]).map(({ sandboxID }) => sandboxID);
        expect({ filter, path, ids: ids.toSorted() }).toEqual({
          filter,
          path,
          ids: matching.map(i => made[i] ?? '').toSorted(),
        });
      }
      expect(
        (await platform.call('GET', `/v2/sandboxes?limit=1&metadata=${encoded}`)).headers.get('x-total-running'),
      ).toBe(String(matching.length));
    }
    // As a person encodes it: each part, then the query value.
    for (const [query, matching] of [
      ['user%3Dann%26app%3Dx', [0]],
      ['user=ben', [2]],
      ['user%3D50%2525', [6]],
    ] as const) {
      const ids = ((await platform.call('GET', `/v2/sandboxes?metadata=${query}`)).body as Listed[]).map(
        ({ sandboxID }) => sandboxID,
      );
      expect(ids).toEqual(matching.map(i => made[i] ?? ''));
    }
  });

  test('a text is found at the beginning of the ID, and in keys and values of the metadata as they are', async () => {
    await using platform = await Platform.start({ database });
    const plain = (await platform.createSandbox()).sandboxID;
    const ada = (await platform.createSandbox({ metadata: { owner: 'Ada "the" L%ovelace', a_b: 'x' } })).sandboxID;
    const found = async (text: string) => {
      const answer = await platform.call('GET', `/v2/sandboxes?text=${encodeURIComponent(text)}`);
      expect(answer.status).toBe(200);
      return (answer.body as Listed[]).map(({ sandboxID }) => sandboxID);
    };
    expect(await found(plain.slice(0, 8).toUpperCase())).toEqual([plain]);
    expect(await found(plain.slice(1))).toEqual([]);
    for (const text of ['ADA', 'the" l%', 'wner', 'a_b']) expect(await found(text)).toEqual([ada]);
    // Neither patterns nor the stored form or its escapes are searched.
    for (const text of ['a%e', 'a_a', '":"', '{', '}', ',', ':', '\\']) expect(await found(text)).toEqual([]);
    const lines = (await platform.createSandbox({ metadata: { path: 'C:\\Temp\next', 'a,b': '' } })).sandboxID;
    for (const text of ['c:\\t', 'temp\ne', 'ext', 'a,b', ',', ':']) expect(await found(text)).toEqual([lines]);
    for (const text of ['\\n', 'next', 'temp\\']) expect(await found(text)).toEqual([]);
    expect((await platform.call('GET', `/v2/sandboxes?text=${'x'.repeat(101)}`)).status).toBe(400);
    expect(await platform.call('GET', '/v2/sandboxes?text=%00')).toMatchObject({
      status: 400,
      body: { message: 'text: must not hold a NUL character' },
    });
  });

  test('a text is found beside metadata that no text of the database can hold', async () => {
    await using platform = await Platform.start({ database });
    const metadata = {
      nul: 'before\0\0after',
      '\0key': '\ud800',
      half: 'left\ud83d',
      plain: 'a \\u0000 in letters',
      emoji: '😀',
    };
    const odd = (await platform.createSandbox({ metadata })).sandboxID;
    const ada = (await platform.createSandbox({ metadata: { owner: 'Ada' } })).sandboxID;
    const found = async (text: string) => {
      const answer = await platform.call('GET', `/v2/sandboxes?text=${encodeURIComponent(text)}`);
      expect({ text, status: answer.status }).toEqual({ text, status: 200 });
      return (answer.body as Listed[]).map(({ sandboxID }) => sandboxID);
    };
    expect(await found('ada')).toEqual([ada]);
    for (const text of ['before', 'left', '\\u0000 in', '😀']) expect(await found(text)).toEqual([odd]);
    expect((await platform.call('GET', `/sandboxes/${odd}`)).body).toMatchObject({ metadata });
  });

  test('state, start time and template filter', async () => {
    await using platform = await Platform.start({ database });
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.push((await platform.createSandbox()).sandboxID);
    const all = (await platform.call('GET', '/v2/sandboxes?order=asc')).body as Listed[];
    const list = async (query: string) => {
      const answer = await platform.call('GET', `/v2/sandboxes?order=asc&${query}`);
      expect(answer.status).toBe(200);
      return {
        ids: (answer.body as Listed[]).map(({ sandboxID }) => sandboxID),
        total: answer.headers.get('x-total-running'),
      };
    };
    // Inclusive, to the microsecond.
    const second = all[1]?.startedAt ?? '';
    expect(await list(`startedAfter=${encodeURIComponent(second)}`)).toEqual({ ids: ids.slice(1), total: '2' });
    const later = second.replace(/(\d{6})Z$/, (_, micros: string) => `${String(Number(micros) + 1).padStart(6, '0')}Z`);
    expect((await list(`startedAfter=${encodeURIComponent(later)}`)).ids).toEqual(ids.slice(2));

    const { templateID } = (await platform.call('GET', `/sandboxes/${ids[0]}`)).body as { templateID: string };
    for (const template of ['base', templateID]) expect((await list(`template=${template}`)).ids).toEqual(ids);
    expect(await list('template=unknown')).toEqual({ ids: [], total: '0' });
    const [listed] = (await platform.call('GET', '/v2/sandboxes?limit=1')).body as { nodeID: string }[];
    expect((await list(`nodeID=${listed?.nodeID}`)).ids).toEqual(ids);
    expect(await list('nodeID=another')).toEqual({ ids: [], total: '0' });

    // Written directly: nothing pauses yet.
    await platform.store.db
      .updateTable('sandboxes')
      .set({ state: 'paused' })
      .where('sandbox_id', '=', ids[0] ?? '')
      .execute();
    await platform.store.db
      .updateTable('sandboxes')
      .set({ state: 'killing' })
      .where('sandbox_id', '=', ids[1] ?? '')
      .execute();
    expect(await list('state=paused')).toEqual({ ids: [ids[0] ?? ''], total: null });
    expect(await list('state=running')).toEqual({ ids: [ids[2] ?? ''], total: '1' });
    expect(await list('')).toEqual({ ids: [ids[0] ?? '', ids[2] ?? ''], total: '1' });
    const v1 = (await platform.call('GET', '/sandboxes')).body as Listed[];
    expect(v1.map(({ sandboxID }) => sandboxID)).toEqual([ids[2] ?? '']);
  });

  test('a team sees its own sandboxes alone, and a foreign ID answers like an unknown one', async () => {
    await using platform = await Platform.start({ database });
    const other = await platform.otherTeam();
    const { sandboxID } = await platform.createSandbox();
    const headers = { 'x-api-key': other.key };
    expect((await platform.call('GET', '/v2/sandboxes', undefined, headers)).body).toEqual([]);
    const routes: Array<[string, string, unknown?]> = [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/timeout', { timeout: 0 }],
      ['POST', '/refreshes'],
      ['POST', '/connect', { timeout: 5 }],
    ];
    for (const [method, suffix, body] of routes) {
      const foreign = await platform.call(method, `/sandboxes/${sandboxID}${suffix}`, body, headers);
      const unknown = await platform.call(method, `/sandboxes/i00000000000000000000${suffix}`, body, headers);
      expect(foreign.status).toBe(404);
      expect(JSON.stringify(foreign.body).replaceAll(sandboxID, 'ID')).toBe(
        JSON.stringify(unknown.body).replaceAll('i00000000000000000000', 'ID'),
      );
    }
    expect((await platform.call('GET', `/sandboxes/${sandboxID}`)).status).toBe(200);
  });
});
