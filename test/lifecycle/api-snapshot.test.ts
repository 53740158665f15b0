import { expect, test } from 'bun:test';
import { AtollError } from '../../src/base/error.ts';
import { snapshotKeeping } from '../../src/api/snapshot/reconcilers/memory.ts';
import type { ApiParts } from '../../src/api/parts.ts';
import { onEachDatabase } from '../api/databases.ts';
import { Platform, until } from '../api/platform.ts';
import { layer } from '../api/support/layer.ts';

type Snapshot = { snapshotID: string; names: string[] };
const snapshot = async (platform: Platform, id: string, body: unknown = {}): Promise<Snapshot> => {
  const answer = await platform.call('POST', `/sandboxes/${id}/snapshots`, body);
  if (answer.status !== 201) throw new Error(`snapshot answered ${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer.body as Snapshot;
};
const list = async (platform: Platform, query = '') =>
  (await platform.call('GET', `/snapshots${query}`)).body as Snapshot[];
const remove = (platform: Platform, id: string) => platform.call('DELETE', `/templates/${encodeURIComponent(id)}`);
const stateOf = async (platform: Platform, id: string) =>
  ((await platform.call('GET', `/sandboxes/${id}`)).body as { state?: string }).state;

onEachDatabase(database => {
  test('a snapshot is a template that outlives its source; create, list filters and delete take its ID', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox({ metadata: { a: 'b' } });
    const made = await snapshot(platform, id);
    expect(made.names).toEqual([]);
    expect(made.snapshotID).toMatch(/^[a-z0-9]{20}:default$/);
    expect(await stateOf(platform, id)).toBe('running');
    await platform.call('DELETE', `/sandboxes/${id}`);
    expect(await list(platform)).toEqual([made]);
    expect(await list(platform, `?sandboxID=${id}`)).toEqual([made]);
    expect(await list(platform, `?name=${encodeURIComponent(made.snapshotID)}`)).toEqual([made]);

    const { sandboxID: child } = await platform.createSandbox({ templateID: made.snapshotID });
    const image = platform.node.created.at(-1)?.image;
    const [kept] = await platform.node.listSnapshots();
    expect(image).toMatchObject({
      layers: [layer('00'), expect.stringContaining('sha256:')],
      memorySnapshotId: kept?.snapshotId,
      defaultUser: 'user',
    });
    expect(
      (await platform.call('GET', `/v2/sandboxes?template=${encodeURIComponent(made.snapshotID)}`)).body,
    ).toMatchObject([{ sandboxID: child }]);
    // It is not listed among the team's templates.
    expect(((await platform.call('GET', '/v2/templates')).body as unknown[]).length).toBe(1);
    expect(await remove(platform, made.snapshotID)).toMatchObject({
      status: 400,
      body: {
        message:
          `Snapshot "${made.snapshotID}" can't be deleted while sandboxes that were made from it run or are paused: ` +
          child,
      },
    });
    await platform.call('DELETE', `/sandboxes/${child}`);
    expect((await remove(platform, made.snapshotID)).status).toBe(204);
    expect((await remove(platform, made.snapshotID)).status).toBe(404);
    expect(await list(platform)).toEqual([]);
    expect((await platform.call('POST', '/v2/sandboxes', { templateID: made.snapshotID })).status).toBe(404);
  });

  test('names and tags: a known name gets a further build, a tag selects its own, the newest is the tag’s', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox();
    const first = await snapshot(platform, id, { name: 'Mine' });
    expect(first).toEqual({ snapshotID: 'default/mine:default', names: ['default/mine'] });
    const tagged = await snapshot(platform, id, { name: 'default/mine:v1' });
    expect(tagged).toEqual({ snapshotID: 'default/mine:v1', names: ['default/mine'] });
    expect(await snapshot(platform, id, { name: 'mine' })).toEqual(first);
    expect(await list(platform)).toEqual([first, tagged]);
    expect(await list(platform, '?name=mine:v1')).toEqual([tagged]);
    expect(await list(platform, '?name=mine')).toEqual([first, tagged]);
    expect(await list(platform, '?name=mine:default')).toEqual([first]);
    expect(await list(platform, '?name=unknown')).toEqual([]);
    const layersOf = async (templateID: string) => {
      await platform.createSandbox({ templateID });
      return platform.node.created.at(-1)?.image.layers[1];
    };
    const taken = (
      await platform.store.db
        .selectFrom('builds')
        .select(['layers_json', 'created_at_us'])
        .where('source_sandbox_id', '=', id)
        .orderBy('created_at_us')
        .execute()
    ).map(row => (JSON.parse(row.layers_json) as string[])[1]);
    expect(taken).toHaveLength(3);
    expect([await layersOf('mine:v1'), await layersOf('mine')]).toEqual([taken[1], taken[2]]);
  });

  test('pages hold every snapshot once, newest first', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox();
    const made = [];
    for (let n = 0; n < 5; n++) made.unshift((await snapshot(platform, id, { name: `s${n}` })).snapshotID);
    const seen: string[] = [];
    for (let token: string | null = ''; token !== null;) {
      const page = await platform.call('GET', `/snapshots?limit=2${token && `&nextToken=${token}`}`);
      seen.push(...(page.body as Snapshot[]).map(({ snapshotID }) => snapshotID));
      token = page.headers.get('x-next-token');
    }
    expect(seen).toEqual(made);
    for (const query of ['?limit=0', '?limit=101', '?nextToken=x', '?name=', '?name=a%2Fb%2Fc', '?sandboxID=A-B-C']) {
      expect((await platform.call('GET', `/snapshots${query}`)).status).toBe(400);
    }
  });

  test('what can’t be a name is refused before anything is done, and a failure leaves the source running', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox();
    let taken = 0;
    platform.node.before = async call => void (call === 'snapshot' && taken++);
    await platform.store.db
      .insertInto('template_names')
      .values({
        namespace: 'default',
        alias: 'own',
        template_id: (await platform.store.db.selectFrom('templates').select('template_id').executeTakeFirstOrThrow())
          .template_id,
        created_at_us: 1,
      })
      .execute();
    for (const [name, status] of [
      ['other/x', 400],
      ['a b', 400],
      ['x:1b4e28ba-2fa1-11d2-883f-0016d3cca427', 400],
      ['', 400],
      ['own', 409],
    ] as const) {
      expect((await platform.call('POST', `/sandboxes/${id}/snapshots`, { name })).status).toBe(status);
    }
    expect(taken).toBe(0);
    platform.node.before = async call => {
      if (call === 'snapshot') throw new AtollError('no_space', 'full');
    };
    expect((await platform.call('POST', `/sandboxes/${id}/snapshots`, {})).status).toBe(507);
    platform.node.before = async call => {
      if (call === 'snapshot') throw new AtollError('internal', 'the disk /secret/disk is still in use');
    };
    for (const path of ['snapshots', 'fork'])
      expect(await platform.call('POST', `/sandboxes/${id}/${path}`, {})).toMatchObject({
        status: 500,
        body: { message: 'Keeping the sandbox failed; the log of the platform has why' },
      });
    expect([await stateOf(platform, id), await list(platform)]).toEqual(['running', []]);
  });

  test('another team sees no snapshot, makes nothing from it and deletes nothing', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox();
    const { snapshotID } = await snapshot(platform, id);
    const headers = { 'x-api-key': (await platform.otherTeam()).key };
    expect((await platform.call('GET', '/snapshots', undefined, headers)).body).toEqual([]);
    expect((await platform.call('POST', '/v2/sandboxes', { templateID: snapshotID }, headers)).status).toBe(404);
    expect(
      (await platform.call('DELETE', `/templates/${encodeURIComponent(snapshotID)}`, undefined, headers)).status,
    ).toBe(404);
    expect(await list(platform)).toHaveLength(1);
  });

  test('a sandbox that is being snapshotted is shown as running; a connect waits; it is paused after that', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox();
    const taking = Promise.withResolvers<void>();
    platform.node.before = async call => void (call === 'snapshot' && (await taking.promise));
    const making = snapshot(platform, id);
    await until(
      async () =>
        (await platform.store.db.selectFrom('sandboxes').select('state').executeTakeFirst())?.state === 'snapshotting',
    );
    expect([await stateOf(platform, id), platform.api.directory.find(id)?.state]).toEqual(['running', 'running']);
    const asked = Promise.all([
      platform.call('POST', `/v2/sandboxes/${id}/connect`, {}),
      platform.call('POST', `/sandboxes/${id}/pause`),
    ]);
    taking.resolve();
    const [connected, paused] = await asked;
    expect([200, 201]).toContain(connected.status);
    expect(paused.status).toBe(204);
    await making;
  });

  test('memory that nothing can be made from any more is deleted, and no other', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox();
    const { snapshotID } = await snapshot(platform, id);
    const { node } = platform;
    const left = async () => (await node.listSnapshots()).length;
    // The machine's clock is far behind: it considers everything it has old.
    const listSnapshots = async () => (await node.listSnapshots()).map(kept => ({ ...kept, takenAtMs: 0 }));
    const protocol = { listSnapshots, deleteSnapshot: (snapshot: string) => node.deleteSnapshot(snapshot) };
    const nodes = { list: () => [{ nodeId: 'local', protocol }] } as unknown as ApiParts['nodes'];
    let minutes = 0;
    const round = snapshotKeeping({ ...platform.api.parts, nodes }, () => minutes * 60_000);
    for (; minutes <= 30; minutes++) await round();
    expect(await left()).toBe(1);
    await remove(platform, snapshotID);
    // Something unneeded now may just be being recorded.
    const begin = minutes;
    for (; minutes < begin + 10; minutes++) {
      await round();
      expect(await left()).toBe(1);
    }
    await round();
    expect(await left()).toBe(0);
  });

  test('a machine that does not answer keeps memory on no other one, and needs are asked for once', async () => {
    await using platform = await Platform.start({ database });
    const deleted: string[] = [];
    const machine = (nodeId: string, fails: 'list' | 'delete' | 'never') => ({
      nodeId,
      protocol: {
        async listSnapshots() {
          if (fails === 'list') throw new Error('it does not answer');
          return [{ snapshotId: `of ${nodeId}`, takenAtMs: 0 }];
        },
        async deleteSnapshot(snapshotId: string) {
          if (fails === 'delete') throw new Error('it does not answer');
          deleted.push(snapshotId);
        },
      },
    });
    const list = () => [machine('one', 'list'), machine('two', 'delete'), machine('three', 'never')];
    const nodes = { list } as unknown as ApiParts['nodes'];
    let asked = 0;
    const db = platform.store.db.withPlugin({
      transformQuery({ node }) {
        if (JSON.stringify(node).includes('napshotId%')) asked++;
        return node;
      },
      transformResult: async ({ result }) => result,
    });
    let minutes = 0;
    const round = snapshotKeeping({ ...platform.api.parts, db, nodes }, () => minutes * 60_000);
    await round();
    minutes = 11;
    await round();
    expect([deleted, asked]).toEqual([['of three'], 2]);
  });

  test('forks begin as their source is now, each for itself; the source stays as it was', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID: id } = await platform.createSandbox({
      timeout: 600,
      metadata: { a: 'b' },
      envVars: { C: 'd' },
      network: { denyOut: ['0.0.0.0/0'] },
      autoPause: true,
    });
    const before = (await platform.call('GET', `/sandboxes/${id}`)).body;
    const answer = await platform.call('POST', `/sandboxes/${id}/fork`, { count: 3, timeout: 90 });
    expect(answer.status).toBe(201);
    const forks = (answer.body as { sandbox: { sandboxID: string; envdAccessToken: string } }[]).map(
      ({ sandbox }) => sandbox,
    );
    expect(new Set([id, ...forks.map(({ sandboxID }) => sandboxID)]).size).toBe(4);
    expect(new Set(forks.map(({ envdAccessToken }) => envdAccessToken)).size).toBe(3);
    expect((await platform.call('GET', `/sandboxes/${id}`)).body).toEqual(before);
    for (const { sandboxID } of forks) {
      const detail = (await platform.call('GET', `/sandboxes/${sandboxID}`)).body as {
        startedAt: string;
        endAt: string;
      };
      expect(detail).toMatchObject({
        metadata: { a: 'b' },
        network: { denyOut: ['0.0.0.0/0'] },
        lifecycle: { onTimeout: 'pause' },
      });
      expect(Date.parse(detail.endAt) - Date.parse(detail.startedAt)).toBe(90_000);
      const created = platform.node.created.find(request => request.sandboxId === sandboxID);
      expect(created?.envVars).toMatchObject({ C: 'd', E2B_SANDBOX_ID: sandboxID });
      expect(created?.image.memorySnapshotId).toMatch(/^[0-9a-f-]{36}$/);
    }
    // What they were made from is kept for nobody else.
    expect(await platform.node.listSnapshots()).toEqual([]);
    const single = await platform.call('POST', `/sandboxes/${id}/fork`);
    expect(single).toMatchObject({ status: 201, body: [{ sandbox: { clientID: '6532622b' } }] });
  });

  test('each fork succeeds or fails by itself, and a failed one leaves nothing', async () => {
    await using platform = await Platform.start({ database, limits: { concurrentSandboxes: 6 } });
    const { sandboxID: id } = await platform.createSandbox();
    let creates = 0;
    platform.node.before = async call => {
      if (call === 'create' && ++creates % 2 === 0) throw new AtollError('unavailable', 'no slot');
    };
    const answer = await platform.call('POST', `/sandboxes/${id}/fork`, { count: 4 });
    const results = answer.body as { sandbox?: unknown; error?: { code: number } }[];
    expect([answer.status, results.length, results.filter(({ sandbox }) => sandbox).length]).toEqual([201, 4, 2]);
    expect(results.flatMap(({ error }) => error?.code ?? [])).toEqual([503, 503]);
    expect(platform.node.executions()).toHaveLength(3);
    platform.node.before = async () => {};
    const more = (await platform.call('POST', `/sandboxes/${id}/fork`, { count: 5 })).body as {
      error?: { code: number };
    }[];
    expect(more.flatMap(({ error }) => error?.code ?? [])).toEqual([429, 429]);
    for (const [count, status] of [
      [6, 400],
      [0, 400],
      [101, 400],
      ['1', 400],
    ] as const) {
      expect((await platform.call('POST', `/sandboxes/${id}/fork`, { count })).status).toBe(status);
    }
    expect((await platform.call('POST', `/sandboxes/${id}/fork`, { timeout: 365 * 24 * 3600 })).status).toBe(400);
  });
});
