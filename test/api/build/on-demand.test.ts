import { expect, test } from 'bun:test';
import { registerBuildOf } from '../../../src/api/build/rules/register.ts';
import { buildOnDemand, ensureShipped } from '../../../src/api/shipped/templates.ts';
import { shippedBuilds } from '../../../src/api/shipped/builds.ts';
import { ensurePublicTemplate } from '../../../src/api/template/rules/provision.ts';
import type { ShippedProtocol } from '../../../src/protocol/shipped.ts';
import { Platform, until } from '../platform.ts';
import { ScriptedBuilder } from '../scripted-builder.ts';
import { layer } from '../support/layer.ts';

/** The machine's part of the templates that come with the platform, without their folders. */
const shipped: ShippedProtocol = {
  has: async () => true,
  key: async name => name,
  define: async name => ({ fromTemplate: 'base', steps: [{ type: 'RUN', args: [`install ${name}`] }] }),
  begin: async () => null,
  end: async () => {},
  files: async () => '',
  baseRootfs: async () => '',
};

/** An API that builds `desktop` and `codex` when they are asked for. */
async function start() {
  const builder = new ScriptedBuilder();
  const platform = await Platform.start({ builder });
  const { parts } = platform.api;
  const options = {
    parts,
    shipped,
    team: platform.team,
    settings: { templates: [], templatesOnDemand: ['desktop', 'codex'] },
    builds: shippedBuilds(undefined, async () => {}),
    onPhase: () => {},
    signal: parts.stopping,
  };
  buildOnDemand(options, name => ensureShipped(name, options));
  const create = (templateID: string, key?: string) =>
    platform.call('POST', '/v2/sandboxes', { templateID }, key === undefined ? {} : { 'x-api-key': key });
  return { builder, platform, parts, create };
}

const idOf = (builder: ScriptedBuilder, place = 0) => builder.started[place]?.buildId ?? '';

test('a template that comes with the platform is built for the first who ask for it, once, for every team', async () => {
  const { builder, platform, create } = await start();
  await using _platform = platform;
  const { key } = await platform.otherTeam();
  const answers = [create('desktop', key), create('Desktop'), create('desktop')];
  await until(() => builder.started.length > 0);
  expect(builder.started[0]).toMatchObject({ steps: [{ args: ['install desktop'] }] });
  builder.succeed(idOf(builder));
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([201, 201, 201]);
  expect((await create('desktop')).status).toBe(201);
  expect(builder.started.length).toBe(1);
});

test('who has waited too long is told what the build does, and the build goes on', async () => {
  const { builder, platform, parts, create } = await start();
  await using _platform = platform;
  parts.awaitedBuilds.waitMs = 0;
  const { status: first, headers } = await create('desktop');
  // Longer than a client with the default timeout has left, so that it shows its user the answer and not a timeout.
  expect([first, headers.get('retry-after')]).toEqual([503, '15']);
  await until(() => builder.started.length > 0);
  const line = '[builder 2/5] RUN install desktop';
  builder.entries.get(idOf(builder))?.push({ timestampMs: Date.now(), level: 'info', message: line });
  await until(async () => {
    const { status, body } = await create('desktop');
    expect(status).toBe(503);
    return (body as { message: string }).message.includes(`built for the first time (${line}); try again`);
  });
  builder.succeed(idOf(builder));
  await until(async () => (await create('desktop')).status === 201);
});

test('who waits is told why the build failed, and the next one who asks begins another', async () => {
  const { builder, platform, create } = await start();
  await using _platform = platform;
  const first = create('desktop');
  await until(() => builder.started.length > 0);
  builder.results.set(idOf(builder), { status: 'error', message: 'the mirror is away' });
  expect(await first).toMatchObject({ status: 503, body: { message: expect.stringContaining('the mirror is away') } });
  expect((await first).headers.get('should-retry')).toBe('false');
  const second = create('desktop');
  await until(() => builder.started.length > 1);
  builder.succeed(idOf(builder, 1));
  expect((await second).status).toBe(201);
});

test('a build that begins from such a template waits for it too', async () => {
  const { builder, platform } = await start();
  await using _platform = platform;
  const registered = await platform.call('POST', '/v3/templates', { name: 'mine' });
  const { templateID, buildID } = registered.body as { templateID: string; buildID: string };
  const begun = platform.call('POST', `/v2/templates/${templateID}/builds/${buildID}`, { fromTemplate: 'codex' });
  await until(() => builder.started.length > 0);
  builder.succeed(idOf(builder));
  expect((await begun).status).toBe(202);
  expect(builder.started[1]).toMatchObject({ buildId: buildID, source: { state: { layers: [layer('11')] } } });
});

test('nothing is begun for other names, tags, namespaces, or where a team has a template of that name', async () => {
  const { builder, platform, create } = await start();
  await using _platform = platform;
  for (const name of ['claude', 'desktop:v2', 'default/desktop']) expect((await create(name)).status).toBe(404);
  await platform.call('POST', '/v3/templates', { name: 'codex' });
  expect((await create('codex')).status).toBe(404);
  expect(builder.started).toEqual([]);
});

test('a build that the operator began by hand is left to end', async () => {
  const { builder, platform, parts, create } = await start();
  await using _platform = platform;
  const template = await ensurePublicTemplate(parts, platform.team, 'desktop');
  const { buildId } = await registerBuildOf(parts, platform.team, template, {});
  const path = `/v2/templates/${template.templateId}/builds/${buildId}`;
  expect((await platform.call('POST', path, { fromTemplate: 'base' })).status).toBe(202);
  const { status, body } = await create('desktop');
  expect([status, (body as { message: string }).message]).toEqual([404, expect.stringContaining('one is under way')]);
  expect(builder.cancelled).toEqual([]);
});
