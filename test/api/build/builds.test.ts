import { expect, spyOn, test } from 'bun:test';
import { existsSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findBuild } from '../../../src/api/build/store/read.ts';
import { deleteTemplateRow } from '../../../src/api/template/store/change.ts';
import { AtollError } from '../../../src/base/error.ts';
import { onEachDatabase } from '../databases.ts';
import { call, Platform, until, type Answer } from '../platform.ts';
import { ScriptedBuilder } from '../scripted-builder.ts';
import { layer } from '../support/layer.ts';
import { messagesOf } from '../support/stream-messages.ts';

type Registered = {
  templateID: string;
  buildID: string;
  names: string[];
  tags: string[];
  aliases: string[];
  public: boolean;
};

async function scene(database: Parameters<Parameters<typeof onEachDatabase>[0]>[0], limits = {}) {
  const builder = new ScriptedBuilder();
  const platform = await Platform.start({ database, builder, limits });
  const register = async (body: Record<string, unknown>) => {
    const answer = await platform.call('POST', '/v3/templates', body);
    expect(answer.status).toBe(202);
    return answer.body as Registered;
  };
  const start = ({ templateID, buildID }: Registered, body: Record<string, unknown> = { fromTemplate: 'base' }) =>
    platform.call('POST', `/v2/templates/${templateID}/builds/${buildID}`, body);
  const status = async ({ templateID, buildID }: Registered, query = '') =>
    (await platform.call('GET', `/templates/${templateID}/builds/${buildID}/status${query}`)).body as {
      status: string;
      logEntries: { message: string }[];
      reason?: { message: string; step?: string };
    };
  const becomes = (build: Registered, wanted: string) => until(async () => (await status(build)).status === wanted);
  const built = async (body: Record<string, unknown>) => {
    const build = await register(body);
    expect((await start(build, { fromImage: 'debian:12' })).status).toBe(202);
    builder.succeed(build.buildID);
    await becomes(build, 'ready');
    return build;
  };
  return { builder, platform, register, start, status, becomes, built };
}

const message = (answer: Answer) => (answer.body as { message?: string } | undefined)?.message ?? '';

onEachDatabase(database => {
  test('free disk beyond the limit of the team is as much as the team may use', async () => {
    const { builder, platform, register, start } = await scene(database, { diskMiB: 20_480 });
    await using _ = platform;
    const build = await register({ name: 'app', minFreeDiskMb: 99_999 });
    expect((await start(build, { fromTemplate: 'base' })).status).toBe(202);
    expect(builder.started[0]).toMatchObject({ resources: { diskMiB: 20_480 } });
  });

  test('a registered build waits; started it builds, and says what its node says', async () => {
    const { builder, platform, register, start, status, becomes } = await scene(database);
    await using _ = platform;
    const build = await register({
      name: 'My-App',
      tags: ['v1', 'v1'],
      cpuCount: 4,
      memoryMB: 2048,
      minFreeDiskMb: 12_000,
    });
    expect(build).toMatchObject({ names: ['default/my-app'], aliases: ['my-app'], tags: ['v1'], public: false });
    expect(await status(build)).toMatchObject({ status: 'waiting', logEntries: [] });
    const steps = [
      { type: 'RUN', args: ['x'] },
      { type: 'COPY', args: ['a', 'b'], filesHash: 'a'.repeat(64), force: true },
    ];
    expect(
      (await start(build, { fromTemplate: 'base', steps, startCmd: 's', readyCmd: 'r', force: true })).status,
    ).toBe(202);
    expect((await status(build)).status).toBe('building');
    expect(builder.started[0]).toMatchObject({
      resources: { cpuCount: 4, memoryMiB: 2048, diskMiB: 12_000 },
      source: { kind: 'state', state: { layers: [layer('00')], user: 'user' } },
      steps: [
        { type: 'RUN', force: false },
        { type: 'COPY', filesHash: 'a'.repeat(64), force: true },
      ],
      startCommand: 's',
      readyCommand: 'r',
      force: true,
      startsAsUser: true,
    });
    const lines = Array.from(
      { length: 250 },
      (_, number) =>
        ({
          timestampMs: 1000 + number,
          level: number % 10 === 0 ? 'warn' : 'info',
          message: `line ${number}`,
          step: '1',
        }) as const,
    );
    builder.entries.get(build.buildID)?.push(...lines);
    await until(async () => (await status(build, '?logsOffset=200')).logEntries.length === 50);
    const pages = [
      await status(build),
      await status(build, '?logsOffset=100'),
      await status(build, '?logsOffset=240&limit=5'),
    ].map(page => page.logEntries.map(entry => entry.message));
    expect(pages.map(page => [page.length, page[0], page.at(-1)])).toEqual([
      [100, 'line 0', 'line 99'],
      [100, 'line 100', 'line 199'],
      [5, 'line 240', 'line 244'],
    ]);
    expect((await status(build, '?level=warn&logsOffset=1&limit=2')).logEntries.map(entry => entry.message)).toEqual([
      'line 10',
      'line 20',
    ]);
    const logs = async (query: string) =>
      (
        (await platform.call('GET', `/templates/${build.templateID}/builds/${build.buildID}/logs?${query}`)).body as {
          logs: { message: string }[];
        }
      ).logs.map(entry => entry.message);
    expect(await logs('limit=2&direction=backward')).toEqual(['line 249', 'line 248']);
    expect(await logs('limit=2&cursor=1100')).toEqual(['line 100', 'line 101']);
    const follow = async (query: string) =>
      messagesOf(
        await fetch(`http://api/templates/${build.templateID}/builds/${build.buildID}/logs/stream?${query}`, {
          unix: platform.socketPath,
          headers: { 'x-api-key': platform.key },
        }),
      );
    const whole = await follow('');
    const warnings = await follow('after=100&level=warn');
    expect((await whole.next()).value).toStartWith('event: ready\nid: 0\n');
    builder.succeed(build.buildID);
    await becomes(build, 'ready');
    const told = await Array.fromAsync(whole);
    expect(told).toHaveLength(251);
    expect(told[249]).toStartWith('id: 250\ndata: {"timestamp":"1970-01-01T00:00:01.249');
    expect(told[250]).toBe('event: end\ndata: {"status":"ready"}');
    const places = (await Array.fromAsync(warnings)).map(text => /id: (\d+)/.exec(text)?.[1]);
    expect(places).toEqual(['100', ...Array.from({ length: 15 }, (_, ten) => `${101 + ten * 10}`), undefined]);
    expect(await platform.createSandbox({ templateID: 'my-app:v1' })).toMatchObject({ templateID: build.templateID });
    expect(platform.node.created.at(-1)?.image).toMatchObject({
      layers: [layer('11')],
      defaultWorkdir: '/w',
      buildEnv: { A: 'b' },
    });
    expect((await platform.call('POST', '/v2/sandboxes', { templateID: 'my-app' })).status).toBe(404);
  });

  test('a failed build has its reason, and leaves the last ready one in place', async () => {
    const { builder, platform, register, start, status, becomes, built } = await scene(database);
    await using _ = platform;
    const first = await built({ name: 'app' });
    const second = await register({ name: 'app' });
    expect(second.templateID).toBe(first.templateID);
    await start(second);
    builder.results.set(second.buildID, { status: 'error', message: 'why', step: '2' });
    await becomes(second, 'error');
    expect((await status(second)).reason).toMatchObject({ message: 'why', step: '2' });
    await platform.createSandbox({ templateID: 'app' });
    expect((await platform.call('GET', '/templates')).body).toContainEqual(
      expect.objectContaining({ buildID: first.buildID, buildStatus: 'error', buildCount: 2 }),
    );
  });

  test('a newer build of the same tags supersedes those that wait and cancels those that run', async () => {
    const { builder, platform, register, start, status } = await scene(database);
    await using _ = platform;
    const waiting = await register({ name: 'app' });
    const other = await register({ name: 'app:other' });
    const running = await register({ name: 'app' });
    expect((await status(waiting)).status).toBe('error');
    expect((await status(other)).status).toBe('waiting');
    await start(running);
    const newest = await register({ name: 'app' });
    expect((await status(running)).status).toBe('building');
    await start(newest);
    expect(builder.cancelled).toEqual([running.buildID]);
    expect((await status(running)).status).toBe('error');
    expect((await start(running)).status).toBe(400);
  });

  test('the Dockerfile of a build that has ended is kept no longer: a team could fill the database with them', async () => {
    const { builder, platform, becomes } = await scene(database);
    await using _ = platform;
    const dockerfile = `FROM debian:12\n#${'x'.repeat(200_000)}\n`;
    const register = async () =>
      (await platform.call('POST', '/templates', { dockerfile, alias: 'large' })).body as Registered;
    const kept = async () =>
      (await platform.store.db.selectFrom('builds').select(['build_id', 'request_json']).execute()).flatMap(row =>
        row.request_json === null ? [] : [row.build_id],
      );
    for (let count = 0; count < 5; count++) {
      const { buildID } = await register();
      expect(await kept()).toEqual([buildID]);
    }
    const last = await register();
    const start = `/templates/${last.templateID}/builds/${last.buildID}`;
    expect((await platform.call('POST', start)).status).toBe(202);
    builder.succeed(last.buildID);
    await becomes(last, 'ready');
    expect(await kept()).toEqual([]);
    expect((await platform.call('POST', start)).status).toBe(202);
  });

  test('a rebuild that is refused leaves the template its name', async () => {
    const { builder, platform, built, register, start } = await scene(database, { concurrentBuilds: 1 });
    await using _ = platform;
    const { templateID } = await built({ name: 'app' });
    const rebuild = () =>
      platform.call('POST', `/templates/${templateID}`, { dockerfile: 'FROM debian:12', alias: 'renamed' });
    const names = async () =>
      ((await platform.call('GET', '/templates')).body as { templateID: string; names: string[] }[]).find(
        each => each.templateID === templateID,
      )?.names;
    const other = await register({ name: 'other' });
    expect((await start(other, { fromImage: 'debian:12' })).status).toBe(202);
    expect((await rebuild()).status).toBe(429);
    expect(await names()).toEqual(['default/app']);
    expect((await platform.call('POST', `/templates/${other.templateID}/builds/${other.buildID}/cancel`)).status).toBe(
      204,
    );
    {
      const away = new AtollError('unavailable', 'The node is away');
      using _start = spyOn(builder, 'start').mockRejectedValueOnce(away);
      expect((await rebuild()).status).toBe(503);
    }
    expect(await names()).toEqual(['default/app']);
    expect((await rebuild()).status).toBe(202);
    expect(await names()).toEqual(['default/renamed']);
  });

  test('a rebuild that a newer one took the place of leaves that its name', async () => {
    const { builder, platform, built } = await scene(database, { concurrentBuilds: 2 });
    await using _ = platform;
    const { templateID } = await built({ name: 'app' });
    const rebuild = () =>
      platform.call('POST', `/templates/${templateID}`, { dockerfile: 'FROM debian:12', alias: 'renamed' });
    const newer = Promise.withResolvers<Answer>();
    using _start = spyOn(builder, 'start').mockImplementationOnce(async () => {
      newer.resolve(await rebuild());
      throw new AtollError('unavailable', 'The node is away');
    });
    expect((await rebuild()).status).toBe(503);
    expect(await newer.promise).toMatchObject({ status: 202 });
    const [template] = (await platform.call('GET', '/templates')).body as { names: string[] }[];
    expect(template?.names).toEqual(['default/renamed']);
  });

  test('its team ends a build that waits or runs; one that is ready stays, one that failed too', async () => {
    const { builder, platform, register, start, status, built } = await scene(database);
    await using _ = platform;
    const cancel = ({ templateID, buildID }: { templateID: string; buildID: string }) =>
      platform.call('POST', `/templates/${templateID}/builds/${buildID}/cancel`);
    const ready = await built({ name: 'app' });
    const running = await register({ name: 'app' });
    await start(running);
    expect((await cancel(running)).status).toBe(204);
    expect(builder.cancelled).toEqual([running.buildID]);
    expect(await status(running)).toMatchObject({ status: 'error', reason: { message: 'Cancelled' } });
    expect((await cancel(running)).status).toBe(204);
    const waiting = await register({ name: 'app' });
    expect((await cancel(waiting)).status).toBe(204);
    expect((await start(waiting)).status).toBe(400);
    expect((await cancel(ready)).status).toBe(409);
    expect((await status(ready)).status).toBe('ready');
  });

  test('a team never runs more builds at once than its limit, however many it had registered before', async () => {
    const { builder, platform, register, start, becomes } = await scene(database, { concurrentBuilds: 2 });
    await using _ = platform;
    const builds = [];
    for (const name of ['a', 'b', 'c', 'd']) builds.push(await register({ name }));
    const answers = await Promise.all(builds.map(build => start(build)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([202, 202, 429, 429]);
    expect(answers.every(({ headers }) => headers.get('retry-after') === null)).toBe(true);
    // An end makes room.
    const running = builds[answers.findIndex(({ status }) => status === 202)];
    const waiting = builds[answers.findIndex(({ status }) => status === 429)];
    if (!running || !waiting) throw new Error('none was started, or all');
    builder.succeed(running.buildID);
    await becomes(running, 'ready');
    expect((await start(waiting)).status).toBe(202);
  });

  test('what a registration must not ask for', async () => {
    const { platform, built } = await scene(database, { cpuCount: 8, memoryMiB: 4096, diskMiB: 20_480 });
    await using _ = platform;
    const known = await built({ name: 'known' });
    const wrong: [Record<string, unknown>, number][] = [
      [{}, 400],
      [{ name: '' }, 400],
      [{ name: 'a/b/c' }, 400],
      [{ name: 'other/app' }, 400],
      [{ name: 'App!' }, 400],
      [{ name: 'x'.repeat(200) }, 400],
      [{ name: 'app', tags: ['01234567-89ab-cdef-0123-456789abcdef'] }, 400],
      [{ name: 'app', tags: ['no good'] }, 400],
      [{ name: 'app', cpuCount: 3 }, 400],
      [{ name: 'app', cpuCount: 10 }, 400],
      [{ name: 'app', memoryMB: 127 }, 400],
      [{ name: 'app', memoryMB: 129 }, 400],
      [{ name: 'app', memoryMB: 8192 }, 400],
      [{ name: 'app', teamID: 'somebody' }, 400],
      [{ name: known.templateID }, 409],
    ];
    for (const [body, status] of wrong)
      expect({ body, status: (await platform.call('POST', '/v3/templates', body)).status }).toEqual({ body, status });
  });

  test('what a start must not ask for, and a start that no builder takes', async () => {
    const { builder, platform, register, start, status } = await scene(database);
    await using _ = platform;
    const build = await register({ name: 'app' });
    for (const body of [{}, { fromImage: '', fromTemplate: '' }, { fromImage: 'a', fromTemplate: 'base' }])
      expect((await start(build, body)).status).toBe(400);
    expect((await start(build, { fromTemplate: 'nothing' })).status).toBe(404);
    expect((await start({ ...build, buildID: 'x' })).status).toBe(400);
    expect((await start({ ...build, buildID: '00000000-0000-4000-8000-000000000000' })).status).toBe(404);
    expect((await start({ ...build, templateID: 'nothing' })).status).toBe(404);
    builder.refuses = true;
    expect((await start(build)).status).toBe(503);
    expect((await status(build)).status).toBe('waiting');
    builder.refuses = false;
    expect((await start(build)).status).toBe(202);
  });

  test('one team’s Dockerfiles, as many as it sends, keep no other team’s from being read', async () => {
    const builder = new ScriptedBuilder();
    const [open, mine] = [Promise.withResolvers<void>(), 'FROM base\nRUN mine\n'];
    let [underWay, most] = [0, 0];
    const read = builder.readDockerfile.bind(builder);
    builder.readDockerfile = async text => {
      most = Math.max(most, ++underWay);
      if (text === mine) await open.promise;
      return read(text).finally(() => underWay--);
    };
    await using platform = await Platform.start({ database, builder });
    const { key } = await platform.otherTeam();
    const sent = Array.from({ length: 20 }, () => platform.call('POST', '/templates', { dockerfile: mine }));
    try {
      await until(() => underWay === 4);
      const body = { dockerfile: 'FROM base\nRUN theirs\n' };
      const theirs = await call(platform.socketPath, 'POST', '/templates', body, { 'x-api-key': key });
      expect([theirs.status, most]).toEqual([202, 5]);
    } finally {
      open.resolve();
      await Promise.all(sent);
    }
    expect(most).toBe(5);
  });

  test('another team neither sees, builds nor changes a template; a published one it may use', async () => {
    const { platform, built } = await scene(database);
    await using _ = platform;
    const build = await built({ name: 'app' });
    const { key } = await platform.otherTeam();
    const theirs = (method: string, path: string, body?: unknown) =>
      call(platform.socketPath, method, path, body, { 'x-api-key': key });
    const paths: [string, string, unknown?][] = [
      ['GET', `/templates/${build.templateID}/builds/${build.buildID}/logs`],
      ['POST', `/v2/templates/${build.templateID}/builds/${build.buildID}`, { fromTemplate: 'base' }],
      ['GET', `/templates/${build.templateID}/files/${'a'.repeat(64)}`],
      ['GET', `/templates/${build.templateID}/tags`],
      ['DELETE', `/templates/${build.templateID}`],
      ['PATCH', `/v2/templates/${build.templateID}`, { public: true }],
      ['POST', '/templates/tags', { target: build.templateID, tags: ['x'] }],
      ['DELETE', '/templates/tags', { name: build.templateID, tags: ['x'] }],
      ['POST', `/templates/${build.templateID}`, { dockerfile: 'FROM x' }],
    ];
    for (const [method, path, body] of paths)
      expect({ method, path, status: (await theirs(method, path, body)).status }).toEqual({
        method,
        path,
        status: 404,
      });
    expect((await platform.call('PATCH', `/v2/templates/${build.templateID}`, { public: true })).body).toEqual({
      names: ['default/app'],
    });
    for (const [method, path, body] of paths)
      expect({ method, path, status: (await theirs(method, path, body)).status }).toEqual({
        method,
        path,
        status: 403,
      });
    expect((await theirs('POST', '/v2/sandboxes', { templateID: 'default/app' })).status).toBe(201);
  });

  test('tags select builds, the newest assignment first', async () => {
    const { platform, built } = await scene(database);
    await using _ = platform;
    const one = await built({ name: 'app', tags: ['one', 'stable'] });
    const two = await built({ name: 'app:two' });
    const assign = (target: string, tags: string[]) => platform.call('POST', '/templates/tags', { target, tags });
    expect((await assign('app:two', ['stable', 'new'])).body).toEqual({
      tags: ['stable', 'new'],
      buildID: two.buildID,
    });
    expect((await assign(`app:${one.buildID}`, ['old'])).body).toEqual({ tags: ['old'], buildID: one.buildID });
    const listed = (await platform.call('GET', '/templates/app/tags')).body as { tag: string; buildID: string }[];
    expect(Object.fromEntries(listed.map(({ tag, buildID }) => [tag, buildID]))).toEqual({
      one: one.buildID,
      stable: two.buildID,
      new: two.buildID,
      two: two.buildID,
      old: one.buildID,
    });
    for (const body of [
      { target: 'app:two', tags: [] },
      { target: 'app:two', tags: ['A b'] },
      { target: 'other/app', tags: ['x'] },
    ])
      expect((await platform.call('POST', '/templates/tags', body)).status).toBe(400);
    for (const target of ['app:none', 'nothing']) expect((await assign(target, ['x'])).status).toBe(404);
    const remove = (name: string, tags: string[]) => platform.call('DELETE', '/templates/tags', { name, tags });
    expect((await remove('app', ['one', 'never-there'])).status).toBe(204);
    for (const [name, tags] of [
      ['app', ['default']],
      ['app', []],
      ['app:two', ['x']],
    ] as const)
      expect((await remove(name, [...tags])).status).toBe(400);
    expect((await remove('nothing', ['x'])).status).toBe(404);
    expect((await platform.call('POST', '/v2/sandboxes', { templateID: 'app:one' })).status).toBe(404);
  });

  test('tags are counted, found, and listed with the builds that they were given to', async () => {
    const { platform, built } = await scene(database);
    await using _ = platform;
    const one = await built({ name: 'app', tags: ['one', 'stable'] });
    const two = await built({ name: 'app', tags: ['stable', 'a_b', 'axb'] });
    const read = async (path: string) => {
      const { status, body } = await platform.call('GET', `/templates/app/tags/${path}`);
      expect([path, status]).toEqual([path, 200]);
      return body as Record<string, unknown>;
    };
    expect(await read('count')).toEqual({ total: 4 });
    expect(await read('exists?tag=Stable')).toEqual({ exists: true, normalizedTag: 'stable' });
    expect(await read('exists?tag=none')).toEqual({ exists: false, normalizedTag: 'none' });

    type Assignment = { assignmentId: string; buildId: string };
    const first = (await read('stable/assignments?limit=1')) as { data: Assignment[]; nextCursor: string };
    const second = (await read(`stable/assignments?limit=1&cursor=${first.nextCursor}`)) as typeof first;
    expect([...first.data, ...second.data].map(({ buildId }) => buildId)).toEqual([two.buildID, one.buildID]);
    expect(second.nextCursor).toBeNull();
    expect(first.data[0]?.assignmentId).not.toBe(second.data[0]?.assignmentId);

    const groups = async (query: string) => {
      const tags: [string, number, boolean][] = [];
      for (let cursor: string | null = ''; cursor !== null;) {
        const page = (await read(`groups?${query}${cursor && `&tagsCursor=${cursor}`}`)) as {
          tags: { tag: string; assignments: Assignment[]; hasMore: boolean }[];
          nextCursor: string | null;
        };
        tags.push(...page.tags.map(group => [group.tag, group.assignments.length, group.hasMore] as (typeof tags)[0]));
        cursor = page.nextCursor;
      }
      return tags;
    };
    for (const tagsLimit of [1, 3, 100]) {
      const names = async (sort: string) => (await groups(`sort=${sort}&tagsLimit=${tagsLimit}`)).map(([name]) => name);
      expect(await names('name_asc')).toEqual(['a_b', 'axb', 'one', 'stable']);
      expect(await names('name_desc')).toEqual(['stable', 'one', 'axb', 'a_b']);
      expect((await names('latest_asc'))[0]).toBe('one');
      expect((await names('latest_desc')).at(-1)).toBe('one');
    }
    expect(await groups('search=a_&assignmentLimit=1')).toEqual([['a_b', 1, false]]);
    expect(await groups('search=stable&assignmentLimit=1')).toEqual([['stable', 1, true]]);
    for (const path of [
      'exists',
      'exists?tag=a%20b',
      'groups?sort=x',
      'groups?tagsLimit=0',
      'groups?tagsCursor=x',
      'groups?search=%25',
      'stable/assignments?cursor=x',
      'stable/assignments?limit=101',
    ])
      expect([path, (await platform.call('GET', `/templates/app/tags/${path}`)).status]).toEqual([path, 400]);
  });

  test("publishing by the old route claims the bare name once, and for the installation's own team alone", async () => {
    const { platform, built } = await scene(database);
    await using _ = platform;
    await built({ name: 'shared' });
    expect((await platform.call('PATCH', '/templates/shared', { public: true })).body).toEqual({
      names: ['default/shared', 'shared'],
    });
    const { key } = await platform.otherTeam();
    const asOther = (method: string, path: string, body?: unknown) =>
      call(platform.socketPath, method, path, body, { 'x-api-key': key });
    expect((await asOther('POST', '/v2/sandboxes', { templateID: 'shared' })).status).toBe(201);
    const theirs = (await asOther('POST', '/v3/templates', { name: 'nginx' })).body as { templateID: string };
    expect((await asOther('PATCH', `/templates/${theirs.templateID}`, { public: true })).body).toEqual({
      names: ['other/nginx'],
    });
    expect((await platform.call('POST', '/v2/sandboxes', { templateID: 'nginx' })).status).toBe(404);
    await built({ name: 'base' });
    const taken = await platform.call('PATCH', '/templates/default%2Fbase', { public: true });
    expect([taken.status, message(taken)]).toEqual([409, 'The public name "base" is taken by another template']);
    expect((await platform.call('PATCH', '/templates/shared', {})).status).toBe(200);
  });

  test('a template goes with its builds, but not while sandboxes come from it', async () => {
    const { builder, platform, register, start, built } = await scene(database);
    await using _ = platform;
    const build = await built({ name: 'app' });
    const { sandboxID } = await platform.createSandbox({ templateID: 'app' });
    expect((await platform.call('DELETE', '/templates/app')).status).toBe(400);
    expect((await platform.call('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
    const running = await register({ name: 'app' });
    await start(running);
    expect((await platform.call('DELETE', '/templates/app:any')).status).toBe(204);
    expect(builder.cancelled).toEqual([running.buildID]);
    expect((await platform.call('GET', `/templates/${build.templateID}`)).status).toBe(404);
    expect((await platform.call('GET', '/templates/aliases/app')).status).toBe(404);
    expect((await register({ name: 'app' })).templateID).not.toBe(build.templateID);
  });

  test('a node forgets a build whose template is deleted while it prints, before its row is gone', async () => {
    const { builder, platform, register, start, status } = await scene(database);
    await using _ = platform;
    const build = await register({ name: 'app' });
    await start(build);
    const print = () => builder.entries.get(build.buildID)?.push({ timestampMs: 1, level: 'info', message: 'a line' });
    print();
    await until(async () => (await status(build)).logEntries.length === 1);
    const forget = builder.forget.bind(builder);
    const rows: unknown[] = [];
    builder.forget = async buildId => {
      rows.push(await findBuild(platform.store.db, buildId));
      await forget(buildId);
    };
    print(); // the follower has yet to write it when the row is gone
    expect((await platform.call('DELETE', '/templates/app')).status).toBe(204);
    expect(builder.entries.has(build.buildID)).toBe(false);
    expect(rows[0]).toMatchObject({ buildId: build.buildID, status: 'error' });
  });

  test('who follows a build whose row is gone has its node end and forget it', async () => {
    const { builder, platform, register, start, status } = await scene(database);
    await using _ = platform;
    const build = await register({ name: 'app' });
    await start(build);
    builder.entries.get(build.buildID)?.push({ timestampMs: 1, level: 'info', message: 'before' });
    await until(async () => (await status(build)).logEntries.length === 1);
    await deleteTemplateRow(platform.store.db, build.templateID);
    builder.entries.get(build.buildID)?.push({ timestampMs: 2, level: 'info', message: 'after' });
    await until(() => !builder.entries.has(build.buildID), 10_000);
    expect(builder.cancelled).toEqual([build.buildID]);
  });

  test('builds that the last run left are followed on, or ended where nobody knows them', async () => {
    const { builder, platform, register, start, status, becomes } = await scene(database);
    await using _ = platform;
    const known = await register({ name: 'known' });
    const lost = await register({ name: 'lost' });
    await start(known);
    await start(lost);
    builder.entries.get(known.buildID)?.push({ timestampMs: 1, level: 'info', message: 'before' });
    await until(async () => (await status(known)).logEntries.length === 1);
    builder.entries.delete(lost.buildID);
    await platform.restart();
    builder.entries.get(known.buildID)?.push({ timestampMs: 2, level: 'info', message: 'after' });
    builder.succeed(known.buildID);
    await becomes(known, 'ready');
    expect((await status(known)).logEntries.map(entry => entry.message)).toEqual(['before', 'after']);
    await becomes(lost, 'error');
    expect((await status(lost)).reason?.message).toContain('restarted');
  });

  test('uploads are taken where they were offered, whole or not at all', async () => {
    const { platform, register } = await scene(database);
    await using _ = platform;
    const { templateID } = await register({ name: 'app' });
    const hash = 'ab'.repeat(32);
    const offer = async () =>
      (await platform.call('GET', `/templates/${templateID}/files/${hash}`)).body as { present: boolean; url: string };
    const { present, url } = await offer();
    expect(present).toBe(false);
    const put = (path: string, body: Bun.BodyInit) =>
      fetch(`http://api${path}`, { unix: platform.socketPath, method: 'PUT', body });
    const path = new URL(url).pathname + new URL(url).search;
    for (const wrong of [
      path.replace(hash, 'cd'.repeat(32)),
      path.replace(/signature=.*/, 'signature=0'),
      path.replace(/expires=\d+/, 'expires=99999999999'),
    ])
      expect((await put(wrong, 'x')).status).toBe(401);
    expect((await put(path, 'archive')).status).toBe(201);
    expect((await offer()).present).toBe(true);
    // A team's share is kept by removing what has gone unused longest; what may be about to be used stays.
    const files = join(platform.directory, 'files', platform.team.teamId);
    const elder = join(files, 'e'.repeat(64));
    truncateSync(join(files, hash), 9 * 2 ** 30);
    writeFileSync(elder, '');
    truncateSync(elder, 3 * 2 ** 30);
    utimesSync(elder, 0, 0);
    expect((await put(path, 'again')).status).toBe(201);
    expect(existsSync(elder)).toBe(false);
    writeFileSync(elder, '');
    truncateSync(elder, 11 * 2 ** 30);
    const full = await put(path, 'once more');
    expect([full.status, await full.text()]).toEqual([507, expect.stringContaining('and may be 2000 of 10 GiB')]);
    rmSync(elder);
    for (const bad of ['x', 'AB'.repeat(32), 'g'.repeat(64)])
      expect((await platform.call('GET', `/templates/${templateID}/files/${bad}`)).status).toBe(400);
    expect((await platform.call('GET', `/templates/nothing/files/${hash}`)).status).toBe(404);
  });
});
