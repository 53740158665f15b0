import { afterAll, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SingleFlight } from '../../base/concurrency/single-flight.ts';
import { newUuid } from '../../base/id.ts';
import { silentLog } from '../../base/telemetry/log.ts';
import type { BuildProgress, BuildProtocol, BuildState, StartBuild } from '../../protocol/build.ts';
import type { ShippedDefinition, ShippedProtocol } from '../../protocol/shipped.ts';
import type { UploadRef } from '../../protocol/upload.ts';
import type { SharedUploads } from '../blob/rules/uploads.ts';
import { AwaitedBuilds } from '../build/rules/awaited.ts';
import { openStore } from '../database/database.ts';
import type { Measures } from '../metrics/measures.ts';
import { limitsFrom } from '../team/rules/limits.ts';
import { createTeam } from '../team/rules/provision-team.ts';
import { templateByName } from '../template/store/resolve.ts';
import { planOfDefinition, runShippedBuild } from './build.ts';
import type { ShippedTemplatesOptions } from './options.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
const filesDir = mkdtempSync(join(tmpdir(), 'atoll-shipped-'));
afterAll(async () => {
  await store[Symbol.asyncDispose]();
  rmSync(filesDir, { recursive: true, force: true });
});
const clock = () => 1e15;
const team = await createTeam({ db, clock }, { name: 'T', slug: 't' });
const built: BuildState = { layers: ['sha256:11'], env: { A: 'b' }, user: 'user', workdir: '/w' };
const archive = Buffer.from('files of a template');

type Scene = { settings?: object; sharedUploads?: SharedUploads | null; progress?: () => Promise<BuildProgress> };

/** An API whose builds end as `progress` says; by default they succeed. */
function scene({ settings = {}, sharedUploads = null, progress }: Scene = {}) {
  const started: StartBuild[] = [];
  const told: string[] = [];
  const stopped = new AbortController();
  const builder = {
    start: async (request: StartBuild) => void started.push(request),
    progress:
      progress ?? (async () => ({ entries: [], next: 0, result: { status: 'ready', state: built, layersMiB: 1 } })),
    cancel: async (_: string, reason: string) => void told.push(`cancel: ${reason}`),
    forget: async () => {},
  } as unknown as BuildProtocol;
  const shipped = {
    files: async (name: string) => (told.push(`files of ${name}`), archive.toString('base64')),
    baseRootfs: async (name: string, signal?: AbortSignal) => (
      told.push(`root of ${name}${signal === stopped.signal ? ', until it is stopped' : ''}`),
      'sha256:root'
    ),
  } as unknown as ShippedProtocol;
  const options: ShippedTemplatesOptions = {
    parts: {
      ...{ builder, clock, db, filesDir, sharedUploads, log: silentLog, limitsOf: limitsFrom({}) },
      followedBuilds: new SingleFlight(),
      awaitedBuilds: new AwaitedBuilds(),
      busy: { replicaId: 'here' },
      measures: { build() {} } as unknown as Measures,
      stopping: new AbortController().signal,
      templateDrivers: new Map(),
    },
    ...{ shipped, team, settings: { templates: [], templatesOnDemand: [], ...settings } },
    builds: { of: () => undefined, put: async () => {} },
    onPhase: phase => void told.push(phase),
    signal: stopped.signal,
  };
  const plan = (definition: ShippedDefinition, cached: BuildState | null = null) =>
    planOfDefinition(options, { name: 'some', definition, cached });
  const run = async (definition: ShippedDefinition = {}, name = `t${newUuid().slice(0, 8)}`) =>
    runShippedBuild(options, { name, definition, plan: await plan({ fromMachine: machine }) });
  return { options, started, told, stopped, plan, run };
}

const machine = { packages: 'p', npm: 'n' };

test('the result of another installation is taken, and nothing is built', async () => {
  const { plan, told } = scene();
  const definition = { steps: [{ type: 'RUN', args: ['x'] }], files: ['f'], startCmd: 'start', readyCmd: 'ready' };
  expect(await plan(definition, built)).toEqual({
    ...{ force: false, driver: 'crun', startCommand: 'start', readyCommand: 'ready', startsAsUser: false, steps: [] },
    source: { kind: 'state', state: built },
  });
  expect(told).toEqual([]);
});

test('a template starts from the machine’s own packages, or from the operator’s image', async () => {
  const own = {
    kind: 'state',
    state: { layers: ['sha256:root'], env: {}, user: 'root', workdir: '' },
    provisions: true,
  };
  for (const settings of [{}, { baseImage: '/srv/rootfs.tar' }]) {
    const { plan, told } = scene({ settings });
    expect(await plan({ fromMachine: machine })).toEqual({
      ...{ force: false, driver: 'crun', startsAsUser: true, steps: [] },
      source: own as never,
    });
    expect(told).toEqual(['root of some, until it is stopped']);
  }
  const { plan, told } = scene({ settings: { baseImage: 'debian:12' } });
  expect((await plan({ fromMachine: machine })).source).toEqual({ kind: 'image', reference: 'debian:12' });
  expect(told).toEqual([]);
  await expect(plan({})).rejects.toMatchObject({
    code: 'invalid',
    message: 'some: the definition says neither fromTemplate nor fromMachine',
  });
});

test('a template starts from another one as that was built', async () => {
  const { plan, run } = scene();
  await run({}, 'under');
  expect((await plan({ fromTemplate: 'under' })).source).toEqual({ kind: 'state', state: built });
});

test('the files of a definition are put where uploads are, whole, for the copying steps', async () => {
  const { plan, told } = scene();
  const hash = createHash('sha256').update(archive).digest('hex');
  const steps = ['COPY', 'RUN'].map(type => ({ type, args: ['a'] }));
  for (let times = 0; times < 2; times++)
    expect((await plan({ fromMachine: machine, files: ['f'], steps })).steps).toEqual([
      { type: 'COPY', args: ['a'], force: false, filesHash: hash },
      { type: 'RUN', args: ['a'], force: false },
    ]);
  expect(told).toContain('files of some');
  expect(readdirSync(join(filesDir, team.teamId))).toEqual([hash]);
  expect(readFileSync(join(filesDir, team.teamId, hash))).toEqual(archive);
  expect(statSync(join(filesDir, team.teamId, hash)).mode & 0o777).toBe(0o600);
  // Where there are no files, none are requested.
  const none = scene();
  expect((await none.plan({ fromMachine: machine, steps })).steps[0]).toEqual({
    type: 'COPY',
    args: ['a'],
    force: false,
  });
  expect(none.told).not.toContain('files of some');
});

test('in a cluster the files are shared, and leave nothing on this process’s disk', async () => {
  const kept: unknown[] = [];
  const sharedUploads = {
    async keep(upload: UploadRef, { path, sizeBytes }: { path: string; sizeBytes: number }) {
      kept.push(upload, readFileSync(path), sizeBytes);
    },
  } as SharedUploads;
  const { plan } = scene({ sharedUploads });
  await plan({ fromMachine: machine, files: ['f'], steps: [] });
  const hash = createHash('sha256').update(archive).digest('hex');
  expect(kept).toEqual([{ teamId: team.teamId, hash }, archive, archive.length]);
  expect(readdirSync(join(filesDir, team.teamId))).toEqual([]);
});

test('a build runs like any other, with the sizes of its definition, and its result is answered', async () => {
  const { run, started, told, stopped } = scene();
  const outcome = await run({ cpuCount: 4, memoryMB: 2048 }, 'sized');
  expect(outcome).toEqual({ isReady: true, buildId: started[0]?.buildId ?? '', state: built });
  expect(started[0]).toMatchObject({ teamId: team.teamId, resources: { cpuCount: 4, memoryMiB: 2048 } });
  expect(await templateByName(db, '', 'sized')).toMatchObject({ public: true, templateId: started[0]?.templateId });
  expect((await run()).isReady).toBe(true);
  expect(started[1]?.resources).toMatchObject({ cpuCount: 2 });
  expect(told).toContain('building');
  // It has ended, and is not ended again.
  stopped.abort();
  expect(told.filter(text => text.startsWith('cancel'))).toEqual([]);
});

test('a build that fails says why, and so does one whose template was deleted', async () => {
  const failing = scene({
    progress: async () => ({ entries: [], next: 0, result: { status: 'error', message: 'no such package' } }),
  });
  expect(await failing.run()).toEqual({ isReady: false, reason: 'no such package' });
  const deleted = scene({
    async progress() {
      await db.deleteFrom('builds').where('status', '=', 'building').execute();
      return { entries: [], next: 0, result: { status: 'error', message: 'gone' } };
    },
  });
  expect(await deleted.run()).toEqual({ isReady: false, reason: 'it was deleted' });
});

test('a build ends with the platform', async () => {
  const asked = Promise.withResolvers<void>();
  const it = scene({
    async progress() {
      asked.resolve();
      while (!it.told.some(text => text.startsWith('cancel'))) await Bun.sleep(1);
      return { entries: [], next: 0, result: { status: 'error', message: 'stopped' } };
    },
  });
  const running = it.run();
  await asked.promise;
  it.stopped.abort(new Error('it is stopped'));
  await expect(running).rejects.toThrow('it is stopped');
  expect(it.told).toContain('cancel: The platform was stopped');
});
