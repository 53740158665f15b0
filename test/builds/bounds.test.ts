import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { startBuildNode, step, type BuildNode } from './support/build-node.ts';

const MiB = 2 ** 20;

let builds: BuildNode;
beforeAll(
  async () =>
    void (builds = await startBuildNode({
      builds: { byteBounds: { perBuild: 20 * MiB, perTeam: 30 * MiB, windowMs: 3_600_000 } },
    })),
  300_000,
);
afterAll(() => builds[Symbol.asyncDispose](), 60_000);

const write = (name: string, mebibytes: number) => step('RUN', `head -c ${mebibytes * MiB} /dev/urandom > /${name}`);
const build = (teamId: string, ...steps: ReturnType<typeof write>[]) =>
  builds.build({ teamId, startsAsUser: false, steps });

test('steps of a build together make no more layers than a build may, refused with the figures', async () => {
  const { result } = await build('one', write('a', 12), write('b', 12), write('c', 1));
  expect(result).toMatchObject({ status: 'error', step: '2' });
  expect(result.status === 'error' && result.message).toMatch(/larger than 7 MiB|a build may make 20 MiB/);
  expect((await build('other', write('d', 12))).result.status).toBe('ready');
});

test('builds of a team together make no more than the team may; what is cached costs nothing, and others build on', async () => {
  const first = [write('e', 9)];
  for (const steps of [first, [write('f', 9)], [write('g', 9)], first])
    expect((await build('two', ...steps)).result.status).toBe('ready');
  const { result } = await build('two', write('h', 9));
  expect(result.status === 'error' && result.message).toMatch(/larger than 2 MiB|may make 30 MiB/);
  expect((await build('three', write('i', 9))).result.status).toBe('ready');
});

test('a team has as many cache directories as it may: one that was not used for long makes room', async () => {
  const stages = (id: number) => [
    {
      from: 'base',
      name: null,
      globalArgs: {},
      instructions: [
        {
          line: 1,
          text: 'RUN',
          kind: 'run' as const,
          command: `echo ${id} > /c/x`,
          heredocs: [],
          mounts: [{ kind: 'cache' as const, target: '/c', id: String(id) }],
        },
      ],
    },
  ];
  for (let id = 0; id < 18; id++)
    await builds.built({
      teamId: 'four',
      startsAsUser: false,
      source: { kind: 'dockerfile', stages: stages(id), templates: { base: builds.base } },
    });
  expect(readdirSync(join(builds.test.dataDir, 'node/build-mounts')).length).toBe(16);
}, 120_000);
