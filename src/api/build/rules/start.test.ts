import { afterAll, expect, test } from 'bun:test';
import { SingleFlight } from '../../../base/concurrency/single-flight.ts';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { silentLog } from '../../../base/telemetry/log.ts';
import type { StartBuildV2 } from '../../../protocol/api/template-build.ts';
import type { BuildProtocol, BuildSource, StartBuild } from '../../../protocol/build.ts';
import type { DriverName } from '../../../protocol/driver.ts';
import { openStore } from '../../database/database.ts';
import type { Measures } from '../../metrics/measures.ts';
import { limitsFrom } from '../../team/rules/limits.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { ensurePublicTemplate } from '../../template/rules/provision.ts';
import { findBuild } from '../store/read.ts';
import { moveBuild, publishBuild } from '../store/write.ts';
import { AwaitedBuilds } from './awaited.ts';
import { registerBuild, registerBuildOf } from './register.ts';
import { planOfSteps, startBuild, templateOfImage, type BuildPlan } from './start.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const clock = () => 1e15;
const newTeam = () => createTeam({ db, clock }, { name: 'T', slug: `t${newUuid().slice(0, 8)}` });
const plan: BuildPlan = { source: { kind: 'image', reference: 'x' }, steps: [], force: false, startsAsUser: true };

/** A team, and a process that starts builds; with `refuses`, starts fail. */
async function scene({ concurrentBuilds = 9, refuses = false, drivers = new Map<string, DriverName>() } = {}) {
  const team = await newTeam();
  const started: StartBuild[] = [];
  const cancelled: string[] = [];
  const builder = {
    async start(request: StartBuild) {
      if (refuses) throw new AtollError('unavailable', 'no builder has room');
      started.push(request);
    },
    cancel: async (buildId: string, reason: string) => void cancelled.push(`${buildId}: ${reason}`),
    progress: () => Promise.reject(new AtollError('not_found', 'it ended with its process')),
  } as unknown as BuildProtocol;
  const deps = {
    ...{ builder, clock, db, busy: { replicaId: 'here' }, limitsOf: limitsFrom({ concurrentBuilds }), log: silentLog },
    followedBuilds: new SingleFlight<string, void>(),
    measures: {} as Measures,
    stopping: new AbortController().signal,
    templateDrivers: drivers,
  };
  const build = async (name: string) => {
    const { buildId } = await registerBuild({ ...deps, limitsOf: limitsFrom({}) }, team, { name });
    const start = async () => {
      const found = await findBuild(db, buildId);
      if (!found) throw new Error('the build is gone');
      await startBuild(deps, team, found, plan);
    };
    return { buildId, start, found: () => findBuild(db, buildId) };
  };
  return { team, deps, started, cancelled, build };
}

test('a waiting build is started with its sizes and plan, and followed', async () => {
  const { team, deps, started, cancelled, build } = await scene();
  const { buildId, start, found } = await build('a');
  await start();
  const { templateId } = (await found()) ?? { templateId: '' };
  expect(started).toEqual([
    { buildId, templateId, teamId: team.teamId, resources: { cpuCount: 2, memoryMiB: 1024, diskMiB: 10_240 }, ...plan },
  ]);
  const following = deps.followedBuilds.underWay(buildId);
  expect(following).toBeDefined();
  await following;
  expect([(await found())?.status, cancelled]).toEqual(['error', []]);
  // The first attempt.
  await expect(start()).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining(`Build ${buildId} can't be started`),
  });
});

test('a build that can’t be started may be started again', async () => {
  const { deps, build } = await scene({ refuses: true });
  const { buildId, start, found } = await build('a');
  await expect(start()).rejects.toThrow('no builder has room');
  expect((await found())?.status).toBe('waiting');
  expect(deps.followedBuilds.underWay(buildId)).toBeUndefined();
});

test('a build replaces the running one, but none starts beyond the team’s limit', async () => {
  const { build, cancelled, started } = await scene({ concurrentBuilds: 1 });
  const first = await build('a');
  await moveBuild(db, first.buildId, 'waiting', 'building', 1);
  const other = await build('b');
  await expect(other.start()).rejects.toMatchObject({
    code: 'rate_limited',
    message: 'The team has 1 build running, which is its limit: wait until one has ended',
  });
  expect([(await other.found())?.status, started]).toEqual(['waiting', []]);
  const second = await build('a');
  await second.start();
  expect(cancelled).toEqual([`${first.buildId}: A newer build of the same template and tags was started`]);
  expect((await first.found())?.status).toBe('error');
});

test('a template is built with the driver that the operator named for it', async () => {
  const { build, started } = await scene({ drivers: new Map([['isolated', 'gvisor']]) });
  for (const name of ['isolated', 'usual']) await (await build(name)).start();
  expect(started.map(({ driver }) => driver)).toEqual(['gvisor', undefined]);
});

const team = await newTeam();
const awaiting = { awaitedBuilds: new AwaitedBuilds(), db };
const config = { defaultUser: 'me', defaultWorkdir: '/w', buildEnv: { A: 'b' } };
const shipped = await ensurePublicTemplate({ db, clock }, team, 'code-interpreter-v1');
const { buildId } = await registerBuildOf({ clock, db, limitsOf: limitsFrom({}) }, team, shipped, {});
await moveBuild(db, buildId, 'waiting', 'building', 1);
await publishBuild(db, buildId, { layers: ['l'], config, agentVersion: '1', diskMiB: 1 }, 1);

const planOf = (body: StartBuildV2, userAgent = 'e2b-js-sdk/2.51.0') => planOfSteps(awaiting, team, body, userAgent);
const standIn: BuildSource = { kind: 'state', state: { layers: ['l'], env: { A: 'b' }, user: 'root', workdir: '' } };

test('a plan contains what clients say, and defaults for the rest', async () => {
  expect(await planOf({ fromImage: 'debian:12' })).toEqual({
    ...{ source: { kind: 'image', reference: 'debian:12' }, steps: [], force: false, startsAsUser: true },
  });
  const steps = [
    { type: 'RUN', args: ['x'], force: true },
    { type: 'COPY', filesHash: 'h' },
  ] as never;
  expect(await planOf({ fromImage: 'debian:12', steps, force: true, startCmd: 's', readyCmd: 'r' })).toEqual({
    source: { kind: 'image', reference: 'debian:12' },
    steps: [
      { type: 'RUN', args: ['x'], force: true },
      { type: 'COPY', args: [], force: false, filesHash: 'h' },
    ],
    ...{ force: true, startsAsUser: true, startCommand: 's', readyCommand: 'r' },
  });
});

test('a build starts from either an image or a template', async () => {
  for (const body of [{}, { fromImage: '', fromTemplate: '' }, { fromImage: 'a', fromTemplate: 'b' }])
    await expect(planOf(body)).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining('exactly one'),
    });
  expect((await planOf({ fromTemplate: 'code-interpreter-v1' })).source).toEqual({
    ...{ kind: 'state', state: { layers: ['l'], env: { A: 'b' }, user: 'me', workdir: '/w' } },
  });
  await expect(planOf({ fromTemplate: 'none' })).rejects.toMatchObject({ code: 'not_found' });
});

test('the clients’ own images are templates here, and an explicit registry is asked', async () => {
  expect((await planOf({ fromImage: 'e2bdev/code-interpreter:latest' })).source).toEqual(standIn);
  // That template was not built.
  expect((await planOf({ fromImage: 'e2bdev/base' })).source).toEqual({ kind: 'image', reference: 'e2bdev/base' });
  const fromImageRegistry = { type: 'registry', username: 'u', password: 'p' } as const;
  expect((await planOf({ fromImage: 'e2bdev/code-interpreter', fromImageRegistry })).source).toEqual({
    ...{ kind: 'image', reference: 'e2bdev/code-interpreter', credential: fromImageRegistry },
  });
  const named = ['e2bdev/base', 'docker.io/e2bdev/base:1.2', 'e2bdev/code-interpreter', 'other/base', 'x/e2bdev/base'];
  expect(named.map(templateOfImage)).toEqual(['base', 'base', 'code-interpreter-v1', undefined, undefined]);
});

test('a failure to find the stand-in template is reported', async () => {
  const away = new Proxy(db, {
    get() {
      throw new AtollError('unavailable', 'no database');
    },
  });
  const asked = planOfSteps({ ...awaiting, db: away }, team, { fromImage: 'e2bdev/code-interpreter' }, '');
  await expect(asked).rejects.toThrow('no database');
});

test('SDKs below 2.3.0 have their steps run as root', async () => {
  const startsAsUser = async (userAgent: string) => (await planOf({ fromImage: 'x' }, userAgent)).startsAsUser;
  const agents = ['', 'curl/8', 'e2b-js-sdk/1.13.2', 'e2b-python-sdk/2.2.6', 'e2b-js-sdk/2.3.0', 'e2b-js-sdk/3.0.0'];
  expect(await Promise.all(agents.map(startsAsUser))).toEqual([true, true, false, false, true, true]);
});
