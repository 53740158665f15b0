import { expect, test } from 'bun:test';
import { registerTemplate } from '../support/register-template.ts';
import { onEachDatabase } from '../databases.ts';
import { Platform, baseTemplate } from '../platform.ts';
import { ScriptedBuilder } from '../scripted-builder.ts';
import { layer } from '../support/layer.ts';

type TemplateBody = Record<string, unknown> & { templateID: string };

onEachDatabase(database => {
  test('the base template is listed, read and found by its name', async () => {
    await using platform = await Platform.start({ database });
    const listed = (await platform.call('GET', '/templates')).body as TemplateBody[];
    expect(listed).toHaveLength(1);
    const [base] = listed;
    expect(base).toMatchObject({
      public: true,
      names: ['base'],
      aliases: ['base'],
      cpuCount: 2,
      memoryMB: 1024,
      diskSizeMB: 5120,
      createdBy: null,
      lastSpawnedAt: null,
      spawnCount: 0,
      buildCount: 1,
      envdVersion: '0.6.13',
      buildStatus: 'ready',
    });
    expect(base?.templateID).toMatch(/^[a-z0-9]{20}$/);
    expect((await platform.call('GET', '/v2/templates')).body).toEqual(listed);
    for (const name of ['base', 'BASE', base?.templateID, 'base:default']) {
      const { status, body } = await platform.call('GET', `/templates/${name}`);
      expect({ name, status }).toEqual({ name, status: 200 });
      expect(body).toMatchObject({
        templateID: base?.templateID,
        names: ['base'],
        builds: [{ status: 'ready', cpuCount: 2, buildID: base?.['buildID'] }],
      });
    }
    await platform.createSandbox();
    const [used] = (await platform.call('GET', '/templates')).body as TemplateBody[];
    expect(used).toMatchObject({ spawnCount: 1, lastSpawnedAt: expect.stringMatching(/^\d{4}-.*Z$/) });
  });

  test("the installation's own templates are everybody's; how they are used is their team's", async () => {
    await using platform = await Platform.start({ database });
    await registerTemplate(platform.api.parts, platform.team, { ...baseTemplate, alias: 'inner', public: false });
    const { key } = await platform.otherTeam();
    const body = { templateID: 'base' };
    expect((await platform.call('POST', '/v2/sandboxes', body, { 'x-api-key': key })).status).toBe(201);
    const listed = async (headers = {}) =>
      (await platform.call('GET', '/default-templates', undefined, headers)).body as TemplateBody[];
    expect(await listed()).toMatchObject([{ names: ['base'], spawnCount: 1, buildCount: 1, buildStatus: 'ready' }]);
    expect(await listed({ 'x-api-key': key })).toMatchObject([{ names: ['base'], spawnCount: 0, lastSpawnedAt: null }]);
  });

  test('a template tells how its sandboxes begin, and its layers with their size and who shares them', async () => {
    const builder = new ScriptedBuilder();
    await using platform = await Platform.start({ database, builder });
    const { parts } = platform.api;
    const layers = [...baseTemplate.layers, layer('11')];
    const own = { ...baseTemplate, alias: 'inner', public: false, layers };
    await registerTemplate(parts, platform.team, own);
    await registerTemplate(parts, platform.team, { ...own, alias: 'twin', layers: [layer('11')] });
    const { status, body } = await platform.call('GET', '/templates/inner/content');
    expect(status).toBe(200);
    expect(body).toMatchObject({
      user: 'user',
      layers: [
        ...baseTemplate.layers.map(digest => ({ digest, sharedBy: [{ names: ['base'] }] })),
        { digest: layer('11'), sizeBytes: 4096, sharedBy: [{ names: ['twin'] }] },
      ],
    });
    const { key } = await platform.otherTeam();
    const byOthers = async (name: string) =>
      (await platform.call('GET', `/templates/${name}/content`, undefined, { 'x-api-key': key })).status;
    expect([await byOthers('inner'), await byOthers('base'), await byOthers('nothing')]).toEqual([404, 403, 404]);
  });

  test('a create begins with the newest build of the tag, or with the one that it names', async () => {
    await using platform = await Platform.start({ database });
    const next = await registerTemplate(platform.api.parts, platform.team, { ...baseTemplate, layers: [layer('01')] });
    const body = (await platform.call('GET', `/templates/${next.templateId}`)).body as {
      builds: Array<{ buildID: string }>;
    };
    expect(body.builds).toHaveLength(2);
    expect(body.builds[0]?.buildID).toBe(next.buildId);
    await platform.createSandbox();
    await platform.createSandbox({ templateID: `base:${body.builds[1]?.buildID}` });
    expect(platform.node.created.map(({ image }) => image.layers)).toEqual([[layer('01')], [layer('00')]]);
    expect(
      (await platform.call('POST', '/v2/sandboxes', { templateID: 'base:00000000-0000-0000-0000-000000000000' }))
        .status,
    ).toBe(404);
  });

  test('pages hold every template and every build once', async () => {
    await using platform = await Platform.start({ database });
    for (let i = 0; i < 5; i++)
      await registerTemplate(platform.api.parts, platform.team, { ...baseTemplate, alias: `t${i}` });
    for (let i = 1; i < 6; i++)
      await registerTemplate(platform.api.parts, platform.team, { ...baseTemplate, layers: [`sha256:0${i}`] });
    const seen: string[] = [];
    for (let token: string | null = ''; token !== null;) {
      const answer = await platform.call('GET', `/v2/templates?limit=2${token && `&nextToken=${token}`}`);
      seen.push(...(answer.body as Array<{ names: string[] }>).flatMap(({ names }) => names));
      token = answer.headers.get('x-next-token');
    }
    expect(seen).toEqual(['t4', 't3', 't2', 't1', 't0', 'base']);
    const builds: string[] = [];
    for (let token: string | null = ''; token !== null;) {
      const answer = await platform.call('GET', `/templates/base?limit=4${token && `&nextToken=${token}`}`);
      builds.push(...(answer.body as { builds: Array<{ buildID: string }> }).builds.map(({ buildID }) => buildID));
      token = answer.headers.get('x-next-token');
    }
    expect(new Set(builds).size).toBe(6);
    expect(builds).toHaveLength(6);
    for (const query of ['limit=0', 'limit=101', 'nextToken=x']) {
      for (const path of ['/v2/templates', '/templates/base'])
        expect((await platform.call('GET', `${path}?${query}`)).status).toBe(400);
    }
  });

  test('teams see their own templates, use public ones, and learn nothing of private ones', async () => {
    await using platform = await Platform.start({ database });
    await registerTemplate(platform.api.parts, platform.team, { ...baseTemplate, alias: 'inner', public: false });
    const other = await platform.otherTeam();
    const headers = { 'x-api-key': other.key };
    expect((await platform.call('GET', '/templates', undefined, headers)).body).toEqual([]);
    expect((await platform.call('GET', '/templates/base', undefined, headers)).status).toBe(403);
    expect((await platform.call('GET', '/templates/inner', undefined, headers)).status).toBe(404);
    expect((await platform.call('GET', '/templates/nothing', undefined, headers)).status).toBe(404);
    expect((await platform.call('POST', '/v2/sandboxes', { templateID: 'base' }, headers)).status).toBe(201);
    const [foreign, unknown] = [
      await platform.call('POST', '/v2/sandboxes', { templateID: 'inner' }, headers),
      await platform.call('POST', '/v2/sandboxes', { templateID: 'outer' }, headers),
    ];
    expect(foreign.status).toBe(404);
    expect(JSON.stringify(foreign.body)).toBe(JSON.stringify(unknown.body).replaceAll('outer', 'inner'));
    expect((await platform.call('POST', '/v2/sandboxes', { templateID: 'inner' })).status).toBe(201);
    expect((await platform.call('GET', `/templates?teamID=${platform.team.teamId}`, undefined, headers)).status).toBe(
      400,
    );
    expect((await platform.call('GET', `/templates?teamID=${platform.team.teamId}`)).status).toBe(200);
  });

  test('a template that sandboxes come from is not deleted: the team’s own are named, of others how many', async () => {
    await using platform = await Platform.start({ database });
    await registerTemplate(platform.api.parts, platform.team, { ...baseTemplate, alias: 'used', public: true });
    const { key } = await platform.otherTeam();
    const create = (headers = {}) => platform.call('POST', '/v2/sandboxes', { templateID: 'used' }, headers);
    const refusal = async () => {
      const { status, body } = await platform.call('DELETE', '/templates/used');
      expect(status).toBe(400);
      return (body as { message: string }).message.split(': ');
    };
    const says = 'Template "used" can\'t be deleted while sandboxes that were made from it run or are paused';
    expect((await create({ 'x-api-key': key })).status).toBe(201);
    expect(await refusal()).toEqual([says, '1 of other teams']);
    const own: string[] = [];
    while (own.length < 7) own.push(((await create()).body as { sandboxID: string }).sandboxID);
    await platform.call('POST', `/sandboxes/${own[0]}/pause`, {});
    expect(await refusal()).toEqual([says, `${own.slice(0, 5).join(', ')}, 2 more, 1 of other teams`]);
  });

  test("a bare name means one's own namespace first", async () => {
    await using platform = await Platform.start({ database });
    const own = await registerTemplate(platform.api.parts, platform.team, {
      ...baseTemplate,
      alias: 'mine',
      layers: [layer('11')],
    });
    // `default/base` beside the public `base`.
    await platform.store.db
      .insertInto('template_names')
      .values({ namespace: 'default', alias: 'base', template_id: own.templateId, created_at_us: 1 })
      .execute();
    const layersOf = async (templateID: string, headers = {}) => {
      expect((await platform.call('POST', '/v2/sandboxes', { templateID }, headers)).status).toBe(201);
      return platform.node.created.at(-1)?.image.layers;
    };
    expect(await layersOf('base')).toEqual([layer('11')]);
    expect(await layersOf('default/base')).toEqual([layer('11')]);
    const other = await platform.otherTeam();
    expect(await layersOf('base', { 'x-api-key': other.key })).toEqual([layer('00')]);
    expect(await layersOf('default/base', { 'x-api-key': other.key })).toEqual([layer('11')]);
  });

  test('the alias route tells free, own and foreign names apart', async () => {
    await using platform = await Platform.start({ database });
    await registerTemplate(platform.api.parts, platform.team, { ...baseTemplate, alias: 'inner', public: false });
    const other = await platform.otherTeam();
    const status = async (alias: string, key = platform.key) =>
      (await platform.call('GET', `/templates/aliases/${encodeURIComponent(alias)}`, undefined, { 'x-api-key': key }))
        .status;
    expect(await status('base')).toBe(200);
    expect(await status('inner')).toBe(200);
    expect(await status('inner:default')).toBe(200);
    expect(await status('inner:v1')).toBe(404);
    expect(await status('base', other.key)).toBe(403);
    expect(await status('inner', other.key)).toBe(403);
    expect(await status('free')).toBe(404);
    expect(await status('default/free')).toBe(404);
    for (const bad of ['a b', 'a/b/c', ':x', 'ü']) expect(await status(bad)).toBe(400);
  });
});
