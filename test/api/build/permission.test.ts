import { expect, test } from 'bun:test';
import type { BuildProtocol, StartBuild } from '../../../src/protocol/build.ts';
import type { DriverName } from '../../../src/protocol/driver.ts';
import { endlessBuilder } from '../fake-builder.ts';
import { adminToken, Platform, type Answer } from '../platform.ts';

/** A builder that also records what it was started with. */
function watchedBuilder(): BuildProtocol & { started: StartBuild[] } {
  const started: StartBuild[] = [];
  const builder = endlessBuilder();
  return { ...builder, started, start: async request => (started.push(request), builder.start(request)) };
}

const messageOf = (answer: Answer) => (answer.body as { message?: string }).message ?? '';
const routes = [
  ['POST', '/v3/templates', { name: 'x' }],
  ['POST', '/v2/templates', { alias: 'x' }],
  ['POST', '/templates', { dockerfile: 'FROM x' }],
  ['POST', '/templates/base', { dockerfile: 'FROM x' }],
] as const;

test.each(['admin', 'off'] as const)('builds that are %s are refused to teams on every route', async buildsAllowed => {
  await using platform = await Platform.start({ builder: watchedBuilder(), buildsAllowed });
  for (const [method, path, body] of routes) {
    const answer = await platform.call(method, path, body);
    expect([path, answer.status, messageOf(answer).includes('ATOLL_BUILDS')]).toEqual([path, 403, true]);
  }
  const asOperator = { 'x-admin-token': adminToken, 'x-team-id': platform.team.teamId, 'x-api-key': '' };
  expect((await platform.call('POST', '/v3/templates', { name: 'x' }, asOperator)).status).toBe(
    buildsAllowed === 'admin' ? 202 : 403,
  );
});

test('a build that was registered before builds were forbidden can’t be started', async () => {
  await using platform = await Platform.start({ builder: watchedBuilder(), buildsAllowed: 'admin' });
  const asOperator = { 'x-admin-token': adminToken, 'x-team-id': platform.team.teamId, 'x-api-key': '' };
  const { templateID, buildID } = (await platform.call('POST', '/v3/templates', { name: 'x' }, asOperator)).body as {
    templateID: string;
    buildID: string;
  };
  expect(
    (await platform.call('POST', `/v2/templates/${templateID}/builds/${buildID}`, { fromTemplate: 'base' })).status,
  ).toBe(403);
  expect(
    (await platform.call('POST', `/v2/templates/${templateID}/builds/${buildID}`, { fromTemplate: 'base' }, asOperator))
      .status,
  ).toBe(202);
});

test('the steps of a template are isolated as its sandboxes are, and no name that a team takes leads out of gVisor', async () => {
  const builder = watchedBuilder();
  const templateDrivers = new Map<string, DriverName>([
    ['wild', 'gvisor'],
    ['tame', 'crun'],
  ]);
  await using platform = await Platform.start({ builder, templateDrivers });
  for (const name of ['wild', 'tame', 'other']) {
    const { templateID, buildID } = (await platform.call('POST', '/v3/templates', { name })).body as {
      templateID: string;
      buildID: string;
    };
    expect(
      (await platform.call('POST', `/v2/templates/${templateID}/builds/${buildID}`, { fromTemplate: 'base' })).status,
    ).toBe(202);
  }
  expect(builder.started.map(({ driver }) => driver)).toEqual(['gvisor', undefined, undefined]);
});
