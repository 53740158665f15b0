import { afterAll, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { createLog } from '../../../base/telemetry/log.ts';
import type {
  BuildProgress,
  BuildSource,
  NodeBuildProtocol,
  StartBuild,
  StepOutcome,
} from '../../../protocol/build.ts';
import type { UploadRef } from '../../../protocol/upload.ts';
import { beginBlob, finishBlob } from '../../blob/store/blobs.ts';
import type { SharedUploads } from '../../blob/rules/uploads.ts';
import { appendBuildLog, readBuildLog } from '../../build/store/log.ts';
import { placeOfBuild } from '../../build/store/node.ts';
import { findStep, putSteps } from '../../build/store/steps.ts';
import { insertBuild, moveBuild } from '../../build/store/write.ts';
import { openStore } from '../../database/database.ts';
import { setNodeStatus } from '../../placement/node-status.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { insertTemplate } from '../../template/store/write.ts';
import { putClusterNode } from '../store/nodes.ts';
import { clusterBuilder } from './builder.ts';
import type { Machines } from './machines.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const nowUs = 1e15;
const clock = () => nowUs;
const { teamId } = await createTeam({ db, clock }, { name: 'T', slug: 't' });
const templateId = newUuid();
await insertTemplate(db, { templateId, teamId, kind: 'template', public: false, nowUs: 1 });

type Progress = (after: number) => Promise<Partial<BuildProgress> & { made?: { key: string; layer: string | null }[] }>;
type Scene = { nodes?: string[]; holders?: string[]; progress?: Progress; failing?: (what: string) => void };

/** A cluster, whose machines get new names in each test, and what they are told. */
async function scene({ nodes: names = ['a', 'b'], holders = [], progress, failing = () => {} }: Scene = {}) {
  const scope = newUuid();
  const idOf = (name: string) => `${name} of ${scope}`;
  const told: string[] = [];
  const started: (StartBuild & { sharesSteps?: boolean })[] = [];
  const tell = async (what: string) => {
    told.push(what);
    failing(what);
  };
  const machines = new Map(
    names.map(name => {
      const builds = {
        readDockerfile: async (text: string) => (await tell(`${name}: read ${text}`), []),
        async start(request: StartBuild) {
          started.push(request);
          await tell(`${name}: start`);
        },
        async progress(_: string, after: number) {
          const said = (await progress?.(after)) ?? {};
          return { entries: [], next: after, ...said };
        },
        cancel: (_: string, reason: string) => tell(`${name}: cancel ${reason}`),
        forget: () => tell(`${name}: forget`),
        answer: (_: string, key: string, outcome: StepOutcome | null) =>
          tell(`${name}: answer ${key} ${JSON.stringify(outcome)}`),
        async collect(keep: string[], replaceable: string[]) {
          await tell(`${name}: collect ${keep} ${replaceable}`);
          return { layersDeleted: 1, filesDeleted: 2, bytesFreed: 3 };
        },
        layerBytes: async () => (await tell(`${name}: bytes`), { [`layer of ${name}`]: 5 }),
      } as unknown as NodeBuildProtocol;
      return [idOf(name), { node: { nodeId: idOf(name) }, machine: { builds } }];
    }),
  );
  for (const nodeId of machines.keys())
    await putClusterNode(db, { nodeId, address: '192.0.2.1:1', certificates: [], renewAtUs: 0, joinedAtUs: 0 }, null);
  const logged: string[] = [];
  const nameOf = (nodeId: string) => nodeId.split(' of ')[0];
  const builder = clusterBuilder({
    ...{ db, clock, seed: new Uint8Array(32).fill(1), log: createLog('info', line => logged.push(line)) },
    machines: {
      usable: () => [...machines.values()],
      known(nodeId: string) {
        const known = machines.get(nodeId);
        if (known) return known;
        throw new AtollError('unavailable', `${nameOf(nodeId)} is out of reach`);
      },
      layers: {
        ensure: (nodeId: string, layers: string[]) => tell(`${nameOf(nodeId)}: layers ${layers}`),
        holders: async () => holders.map(idOf),
      },
    } as unknown as Machines,
    uploads: {
      ensure: async ({ node }: { node: { nodeId: string } }, uploads: UploadRef[]) =>
        tell(`${nameOf(node.nodeId)}: uploads ${uploads.map(({ hash }) => hash)}`),
    } as unknown as SharedUploads,
  });
  const building = async () => {
    const buildId = newUuid();
    const size = { cpuCount: 2, memoryMiB: 512, diskMiB: 700 };
    await insertBuild(db, { buildId, templateId, tags: ['default'], ...size, nowUs });
    await moveBuild(db, buildId, 'waiting', 'building', nowUs);
    return buildId;
  };
  const requestOf = (
    buildId: string,
    source: BuildSource = { kind: 'image', reference: 'secret image' },
  ): StartBuild => ({
    ...{ buildId, templateId, teamId, source, steps: [], force: false, startsAsUser: true },
    resources: { cpuCount: 2, memoryMiB: 512, diskMiB: 700 },
  });
  const start = async (source?: BuildSource) => {
    const buildId = await building();
    await builder.start(requestOf(buildId, source));
    const place = await placeOfBuild(db, buildId);
    return { buildId, place, node: nameOf(place?.nodeId ?? '') };
  };
  /** A machine is given up, and out of reach. */
  const lose = async (name: string) => {
    machines.delete(idOf(name));
    await db.updateTable('cluster_nodes').set({ given_up: 1 }).where('node_id', '=', idOf(name)).execute();
  };
  return { builder, told, started, logged, machines, idOf, building, requestOf, start, lose };
}

const state = (...layers: string[]): BuildSource => ({
  ...{ kind: 'state', state: { layers, env: {}, user: 'root', workdir: '' } },
});
const gone = () => Promise.reject(new AtollError('not_found', 'its process does not know it'));

test('a build is begun with everything that it starts from, on the machine named in the database', async () => {
  const { start, told, started } = await scene({ nodes: ['a'] });
  const { buildId, place } = await start(state('l1', 'l2'));
  expect(told).toEqual(['a: layers l1,l2', 'a: uploads ', 'a: start']);
  expect(started).toMatchObject([{ buildId, sharesSteps: true }]);
  expect(place).toMatchObject({ teamId, nodesLost: 0, logOffset: 0, sealedPlan: expect.any(String) });
  // The plan is the team's secret: a registry's password may be in it.
  expect((await start()).place?.sealedPlan).not.toContain('secret image');
});

test('the layers of a Dockerfile’s templates and the archives of its steps are brought, each once', async () => {
  const { builder, building, requestOf, told } = await scene({ nodes: ['a'] });
  const buildId = await building();
  const templates = { one: { layers: ['l1'] }, two: { layers: ['l2'] } };
  const source = { kind: 'dockerfile', templates } as unknown as BuildSource;
  const steps = [{ filesHash: 'h1' }, {}, { filesHash: 'h2' }, { filesHash: 'h1' }] as StartBuild['steps'];
  await builder.start({ ...requestOf(buildId, source), steps });
  expect(told).toEqual(['a: layers l1,l2', 'a: uploads h1,h2', 'a: start']);
});

test('a build goes where its layers are and the fewest builds run, but to no machine that is taken out', async () => {
  expect((await (await scene({ holders: ['b'] })).start(state('l'))).node).toBe('b');
  const { start, idOf } = await scene({ nodes: ['a', 'b', 'c'] });
  expect(new Set([(await start()).node, (await start()).node, (await start()).node])).toEqual(new Set(['a', 'b', 'c']));
  await setNodeStatus(db, { nodeId: idOf('a'), status: 'draining', changedAtUs: 1 });
  for (let times = 0; times < 2; times++) expect((await start()).node).not.toBe('a');
  // Where all are draining, one of them has to do it.
  for (const name of ['b', 'c']) await setNodeStatus(db, { nodeId: idOf(name), status: 'draining', changedAtUs: 1 });
  expect((await start()).node).toBe('a');
  const none = await scene({ nodes: [] });
  const refused = { code: 'unavailable', message: expect.stringContaining('No machine of the cluster is in reach') };
  await expect(none.start()).rejects.toMatchObject(refused);
  await expect((async () => none.builder.readDockerfile('x'))()).rejects.toMatchObject(refused);
});

test('a machine that does not know a build yet is not asked for it', async () => {
  const go = Promise.withResolvers<void>();
  const it = await scene({ nodes: ['a'], progress: gone });
  const ensure = go.promise.then(() => {});
  const { builder, building, requestOf, machines, idOf } = it;
  const builds = machines.get(idOf('a'))?.machine.builds;
  const begin = builds?.start.bind(builds);
  if (builds)
    builds.start = async request => {
      await ensure;
      await begin?.(request);
    };
  const buildId = await building();
  const starting = builder.start(requestOf(buildId));
  while (!(await placeOfBuild(db, buildId))) await Bun.sleep(1);
  expect(await builder.progress(buildId, 7, 1)).toEqual({ entries: [], next: 7 });
  go.resolve();
  await starting;
  // From here on its answer counts.
  expect((await builder.progress(buildId, 0, 1)).next).toBe(1);
});

test('the log of a build continues after that of lost machines', async () => {
  const asked: number[] = [];
  const it = await scene({
    nodes: ['a'],
    progress: async after => {
      asked.push(after);
      return { next: after + 2, made: [{ key: 'k', layer: 'l' }] };
    },
  });
  const { buildId } = await it.start();
  await db.updateTable('builds').set({ log_offset: 10 }).where('build_id', '=', buildId).execute();
  expect(await it.builder.progress(buildId, 13, 1)).toEqual({ entries: [], next: 15 });
  expect(await it.builder.progress(buildId, 4, 1)).toEqual({ entries: [], next: 12 });
  expect(asked).toEqual([3, 0]);
  // What one machine has made, all may use.
  expect(await findStep(db, { teamId, key: 'k' }, nowUs)).toEqual({ layer: 'l' });
  await expect(it.builder.progress(await it.building(), 0, 1)).rejects.toMatchObject({ code: 'not_found' });
});

test('a build whose machine is lost is begun on another one, once', async () => {
  const away = () => Promise.reject(new AtollError('unavailable', 'it does not answer'));
  const it = await scene({ nodes: ['a', 'b', 'c'], progress: away });
  const { buildId, node } = await it.start();
  await appendBuildLog(db, buildId, 0, [{ timestampMs: 1, level: 'info', message: 'begun' }]);
  // A machine that merely does not answer is waited for.
  await expect(it.builder.progress(buildId, 1, 1)).rejects.toThrow('it does not answer');
  await it.lose(node ?? '');
  it.told.length = 0;
  expect(await it.builder.progress(buildId, 1, 1)).toEqual({ entries: [], next: 2 });
  const second = await placeOfBuild(db, buildId);
  expect(second).toMatchObject({ nodesLost: 1, logOffset: 2 });
  expect(second?.nodeId).not.toBe(it.idOf(node ?? ''));
  expect(it.started).toHaveLength(2);
  expect(it.started[1]).toEqual(it.started[0] as never);
  expect((await readBuildLog(db, buildId, { limit: 9 }))[1]).toMatchObject({
    ...{ level: 'warn', timestampMs: nowUs / 1000, message: expect.stringContaining('it is built once more') },
  });
  expect(it.logged).toHaveLength(1);
  await it.lose(second?.nodeId.split(' of ')[0] ?? '');
  expect(await it.builder.progress(buildId, 2, 1)).toMatchObject({
    ...{ entries: [], next: 2 },
    result: {
      status: 'error',
      message: expect.stringMatching(/^The machine that built it .* was lost; start it again$/),
    },
  });
  expect(it.started).toHaveLength(2);
});

test('if there is no other machine, a process that does not know a build is asked to begin it', async () => {
  const alone = await scene({ nodes: ['a'], progress: gone });
  const { buildId } = await alone.start();
  await alone.builder.progress(buildId, 0, 1);
  expect([(await placeOfBuild(db, buildId))?.nodesLost, alone.started.length]).toEqual([1, 2]);
  const two = await scene({ progress: gone });
  const begun = await two.start();
  await two.builder.progress(begun.buildId, 0, 1);
  expect((await placeOfBuild(db, begun.buildId))?.nodeId).not.toBe(begun.place?.nodeId as string);
});

test('a build that can’t be begun again has failed, and one that has ended meanwhile is left alone', async () => {
  let fails = false;
  const failing = (what: string) => {
    if (fails && what.endsWith('start')) throw new AtollError('unavailable', 'it has no room');
  };
  const it = await scene({ progress: gone, failing });
  const { buildId } = await it.start();
  fails = true;
  expect((await it.builder.progress(buildId, 3, 1)).result).toMatchObject({
    ...{ status: 'error', message: expect.stringContaining('could not be begun on another one (it has no room)') },
  });
  fails = false;
  const ended = await it.start();
  await db.updateTable('builds').set({ sealed_plan: null }).where('build_id', '=', ended.buildId).execute();
  expect((await it.builder.progress(ended.buildId, 0, 1)).result?.status).toBe('error');
  const moved = await it.start();
  await moveBuild(db, moved.buildId, 'building', 'error', 1);
  const before = it.started.length;
  expect(await it.builder.progress(moved.buildId, 0, 1)).toEqual({ entries: [], next: 0 });
  expect(it.started).toHaveLength(before);
});

test('a build’s question is answered with what another machine has made of the step', async () => {
  let fails = false;
  const it = await scene({
    nodes: ['a'],
    progress: async () => ({ question: 'q' }),
    failing(what) {
      if (fails && what.includes('layers')) throw new AtollError('unavailable', 'nobody has it');
    },
  });
  const { buildId } = await it.start();
  const ask = async () => {
    it.told.length = 0;
    await it.builder.progress(buildId, 0, 1);
    return it.told;
  };
  expect(await ask()).toEqual(['a: answer q null']);
  await putSteps(db, teamId, [{ key: 'q', layer: null }], 1);
  expect(await ask()).toEqual(['a: answer q {"layer":null}']);
  await putSteps(db, teamId, [{ key: 'q', layer: 'l' }], 1);
  expect(await ask()).toEqual(['a: layers l', 'a: answer q {"layer":"l"}']);
  fails = true;
  expect(await ask()).toEqual(['a: layers l', 'a: answer q null']);
  expect(await findStep(db, { teamId, key: 'q' }, 1)).toBeNull();
  expect(it.logged).toEqual([expect.stringContaining('a step is carried out again')]);
});

test('a build is ended and forgotten on its machine, as long as that is there', async () => {
  const it = await scene({ nodes: ['a'] });
  const { buildId } = await it.start();
  it.told.length = 0;
  await it.builder.cancel(buildId, 'by hand');
  await it.builder.forget(buildId);
  const unplaced = await it.building();
  await it.builder.cancel(unplaced, 'by hand');
  await it.builder.forget(unplaced);
  expect(it.told).toEqual(['a: cancel by hand', 'a: forget']);
  await it.lose('a');
  await it.builder.forget(buildId);
  expect(it.told).toHaveLength(2);
});

test('all machines collect, and those that answer report the sizes of layers', async () => {
  const blob = { blobId: newUuid(), kind: 'layer', name: 'stored', bytes: 1, sealedKey: null, facts: null } as const;
  await beginBlob(db, blob, { replicaId: 'here', nowUs: 1 });
  await finishBlob(db, blob.blobId, null, 1);
  const it = await scene({
    failing(what) {
      if (what === 'b: bytes') throw new AtollError('unavailable', 'away');
    },
  });
  expect(await it.builder.collect(['stored', 'other'])).toEqual({ layersDeleted: 2, filesDeleted: 4, bytesFreed: 6 });
  expect(it.told).toEqual(['a: collect stored,other stored', 'b: collect stored,other stored']);
  expect(await it.builder.layerBytes(['x'])).toEqual({ 'layer of a': 5 });
  await it.builder.readDockerfile('FROM x');
  expect(it.told.at(-1)).toBe('a: read FROM x');
});
