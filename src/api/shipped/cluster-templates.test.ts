import { afterAll, afterEach, beforeEach, expect, spyOn, test } from 'bun:test';
import { SingleFlight } from '../../base/concurrency/single-flight.ts';
import { AtollError } from '../../base/error.ts';
import { newUuid } from '../../base/id.ts';
import { createLog } from '../../base/telemetry/log.ts';
import type { BuildProtocol, BuildState, StartBuild } from '../../protocol/build.ts';
import type { ShippedProtocol } from '../../protocol/shipped.ts';
import { beginBlob, finishBlob } from '../blob/store/blobs.ts';
import { AwaitedBuilds } from '../build/rules/awaited.ts';
import { registerBuildOf } from '../build/rules/register.ts';
import { publishBuild } from '../build/store/write.ts';
import type { Machines } from '../cluster/rules/machines.ts';
import { openStore } from '../database/database.ts';
import type { Measures } from '../metrics/measures.ts';
import { limitsFrom } from '../team/rules/limits.ts';
import { createTeam } from '../team/rules/provision-team.ts';
import { ensurePublicTemplate } from '../template/rules/provision.ts';
import { shippedBuilds } from './builds.ts';
import { ensureClusterTemplates } from './cluster-templates.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const clock = () => 1e15;
const team = await createTeam({ db, clock }, { name: 'T', slug: 't' });
const state: BuildState = { layers: ['sha256:11'], env: {}, user: 'user', workdir: '' };

beforeEach(async () => {
  for (const table of ['template_names', 'builds', 'templates', 'blobs'] as const) await db.deleteFrom(table).execute();
  // Each pause of a second before the next look ends at once.
  spyOn(Bun, 'sleep').mockImplementation(() => new Promise(resolve => setImmediate(resolve)));
});
afterEach(() => void spyOn(Bun, 'sleep').mockRestore());

type Scene = {
  wanted?: string[];
  onDemand?: string[];
  isInReach?: () => boolean;
  key?: (name: string) => Promise<string>;
};

/** A process of control that has the templates built, and what it did, in order. */
function scene({ wanted = [], onDemand = [], isInReach = () => true, key = async name => name }: Scene = {}) {
  const done: string[] = [];
  const logged: string[] = [];
  const stopped = new AbortController();
  const held: { holders: string[] } = { holders: [] };
  const shipped = {
    key,
    define: async (name: string) => (done.push(`build ${name}`), { fromMachine: { packages: 'p', npm: 'n' } }),
    begin: async () => state,
    end: async () => {},
  } as unknown as ShippedProtocol;
  const machines = {
    usable: () => (isInReach() ? [{ machine: { shipped } }] : []),
    layers: { holders: async (layers: string[]) => (layers.includes('sha256:11') ? held.holders : []) },
  } as unknown as Machines;
  const builder = {
    start: async (_: StartBuild) => {},
    progress: async () => ({ entries: [], next: 0, result: { status: 'ready', state, layersMiB: 1 } }),
    cancel: async () => {},
    forget: async () => {},
  } as unknown as BuildProtocol;
  const parts = {
    ...{ builder, clock, db, filesDir: '/nonexistent', sharedUploads: null, limitsOf: limitsFrom({}) },
    log: createLog('info', line => logged.push(line)),
    followedBuilds: new SingleFlight<string, void>(),
    awaitedBuilds: new AwaitedBuilds(),
    busy: { replicaId: 'here' },
    measures: { build() {} } as unknown as Measures,
    stopping: new AbortController().signal,
    templateDrivers: new Map(),
  };
  const options = {
    ...{ parts, team, settings: { templates: wanted, templatesOnDemand: onDemand } },
    builds: shippedBuilds(undefined, async () => {}),
    onPhase: () => {},
    signal: stopped.signal,
  };
  const ensure = () => ensureClusterTemplates(options, machines);
  return { done, logged, stopped, held, parts, ensure };
}

test('everything wanted is built if it is missing, the base first, and creates wait for each', async () => {
  const go = Promise.withResolvers<void>();
  const key = async (name: string) => (await go.promise, name);
  const { done, ensure, parts, logged } = scene({ wanted: ['one', 'two', 'base'], key });
  const ensured = ensure();
  const { templateId } = await ensurePublicTemplate(parts, team, 'two');
  while (!parts.awaitedBuilds.underWay(templateId)) await new Promise(resolve => setImmediate(resolve));
  expect(done).toEqual(['build base']);
  go.resolve();
  await ensured;
  expect(parts.awaitedBuilds.underWay(templateId)).toBeUndefined();
  expect([done, logged]).toEqual([['build base', 'build one', 'build two'], []]);
});

test('what a machine or the store has is not built again', async () => {
  const { done, ensure, held } = scene();
  await ensure();
  held.holders = ['a'];
  await ensure();
  expect(done).toEqual(['build base']);
  held.holders = [];
  const blob = { blobId: newUuid(), kind: 'layer', name: 'sha256:11', bytes: 1, sealedKey: null, facts: null } as const;
  await beginBlob(db, blob, { replicaId: 'here', nowUs: 1 });
  // It is not there yet.
  await ensure();
  expect(done).toEqual(['build base', 'build base']);
  await finishBlob(db, blob.blobId, null, 1);
  await ensure();
  expect(done).toHaveLength(2);
});

test('a machine is waited for', async () => {
  let looks = 0;
  const { done, ensure } = scene({ isInReach: () => ++looks > 3 });
  await ensure();
  expect([done, looks]).toEqual([['build base'], 4]);
});

test('building waits for another process that builds the same', async () => {
  const { done, ensure, held, parts } = scene();
  const template = await ensurePublicTemplate(parts, team, 'base');
  const { buildId } = await registerBuildOf(parts, team, template, {});
  await db.updateTable('builds').set({ status: 'building' }).where('build_id', '=', buildId).execute();
  const ensured = ensure();
  for (let turns = 0; turns < 20; turns++) await new Promise(resolve => setImmediate(resolve));
  expect(done).toEqual([]);
  held.holders = ['a'];
  const config = { defaultUser: 'user', defaultWorkdir: '', buildEnv: {} };
  await publishBuild(db, buildId, { layers: state.layers, config, agentVersion: '1', diskMiB: 1 }, clock());
  await ensured;
  expect(done).toEqual([]);
});

test('of two processes that begin at the same moment one goes on, and the other looks again', async () => {
  let asked = 0;
  const { done, ensure, logged } = scene({
    async key(name) {
      if (++asked === 1) throw new AtollError('conflict', 'somebody else was faster');
      return name;
    },
  });
  await ensure();
  expect([done, logged]).toEqual([['build base', 'build base'], []]);
});

test('attempts to build the base never end, until the platform is stopped', async () => {
  let asked = 0;
  const { done, ensure, logged, stopped } = scene({
    async key() {
      if (++asked === 3) stopped.abort();
      throw new AtollError('unavailable', 'the mirror is away');
    },
  });
  await ensure();
  expect(done).toHaveLength(3);
  // The last attempt failed because of the stop, which is not logged.
  expect(logged).toHaveLength(2);
  expect(logged[0]).toContain('the base template is tried again');
  expect(logged[0]).toContain('the mirror is away');
});

test('another template’s failure is logged, and nothing waits after the platform has stopped', async () => {
  const { done, ensure, logged, stopped } = scene({
    wanted: ['broken'],
    async key(name) {
      if (name === 'broken') throw new AtollError('unavailable', 'the mirror is away');
      return name;
    },
  });
  const ensured = ensure();
  while (logged.length === 0) await new Promise(resolve => setImmediate(resolve));
  stopped.abort();
  await ensured;
  expect(done).toEqual(['build base', 'build broken']);
  expect(logged).toEqual([expect.stringContaining('the template broken could not be built')]);
});

test('a process that is stopped already begins nothing', async () => {
  const { done, ensure, stopped } = scene({ wanted: ['one'] });
  stopped.abort();
  await ensure();
  expect(done).toEqual([]);
});

test('from then on templates are built when somebody asks for them', async () => {
  const { done, ensure, parts } = scene({ onDemand: ['later'] });
  await ensure();
  const templateId = await parts.awaitedBuilds.beginOnDemand('later');
  await parts.awaitedBuilds.underWay(templateId ?? '');
  expect(done).toEqual(['build base', 'build later']);
});
