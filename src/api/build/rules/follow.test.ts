import { afterAll, afterEach, beforeEach, expect, spyOn, test } from 'bun:test';
import { SingleFlight } from '../../../base/concurrency/single-flight.ts';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { createLog } from '../../../base/telemetry/log.ts';
import type { BuildProgress, BuildProtocol, BuildResult, BuildState } from '../../../protocol/build.ts';
import { openStore } from '../../database/database.ts';
import type { Measures } from '../../metrics/measures.ts';
import { enterReplica } from '../../replica/store/replicas.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { insertTemplate } from '../../template/store/write.ts';
import { appendBuildLog, readBuildLog } from '../store/log.ts';
import { findBuild } from '../store/read.ts';
import { insertBuild, moveBuild } from '../store/write.ts';
import { cancelBuildsOf, followBuild, forgetBuildsOf, reconcileBuilds } from './follow.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const it = { nowUs: 1e15 };
const clock = () => it.nowUs;
const team = await createTeam({ db, clock }, { name: 'T', slug: 't' });
const other = await createTeam({ db, clock }, { name: 'O', slug: 'o' });
const templateOf = async ({ teamId }: typeof team) => {
  const templateId = newUuid();
  await insertTemplate(db, { templateId, teamId, kind: 'template', public: false, nowUs: 1 });
  return templateId;
};
const templateId = await templateOf(team);

beforeEach(() => {
  // Every pause before asking again ends at once.
  spyOn(Bun, 'sleep').mockImplementation(() => new Promise(resolve => setImmediate(resolve)));
});
afterEach(() => void spyOn(Bun, 'sleep').mockRestore());

/** A build that runs, or only waits. */
async function build(of = templateId, isRunning = true): Promise<string> {
  const buildId = newUuid();
  const size = { cpuCount: 2, memoryMiB: 512, diskMiB: 700 };
  await insertBuild(db, { buildId, templateId: of, tags: ['default'], ...size, nowUs: it.nowUs });
  if (isRunning) await moveBuild(db, buildId, 'waiting', 'building', it.nowUs);
  return buildId;
}

const state: BuildState = { layers: ['sha256:11'], env: { A: 'b' }, user: 'me', workdir: '/w' };
const ready: BuildResult = { status: 'ready', state, layersMiB: 1 };
const line = (message: string) => ({ timestampMs: 1, level: 'info' as const, message });

type Progress = (after: number, asked: number) => BuildProgress | Promise<BuildProgress>;

/** A process that follows builds on a node whose builds advance as `progress` says. */
function following(progress: Progress = after => ({ entries: [], next: after, result: ready })) {
  const told: string[] = [];
  const logged: string[] = [];
  const measured: string[] = [];
  let asked = 0;
  const builder = {
    progress: async (_: string, after: number) => progress(after, ++asked),
    cancel: async (buildId: string, reason: string) => void told.push(`cancel ${buildId}: ${reason}`),
    forget: async (buildId: string) => void told.push(`forget ${buildId}`),
  } as unknown as BuildProtocol;
  const stopped = new AbortController();
  const deps = {
    ...{ builder, clock, db, busy: { replicaId: 'here' }, stopping: stopped.signal },
    followedBuilds: new SingleFlight<string, void>(),
    log: createLog('warn', text => logged.push(text)),
    measures: { build: (status: string) => void measured.push(status) } as unknown as Measures,
  };
  const follow = async (buildId: string) => {
    followBuild(deps, buildId);
    await deps.followedBuilds.settled();
  };
  return { deps, told, logged, measured, stopped, follow, asked: () => asked };
}

test('a successful build is ready with its whole result, and its node forgets it', async () => {
  const buildId = await build();
  const started = { snapshotId: 's', layers: ['sha256:22'] };
  const result = { ...ready, startCommand: 'start', readyCommand: 'ready', started } as unknown as BuildResult;
  const { follow, told, measured, logged } = following(after => ({ entries: [line('x')], next: after + 1, result }));
  await follow(buildId);
  expect(await findBuild(db, buildId)).toMatchObject({
    ...{ status: 'ready', layers: ['sha256:11'], diskMiB: 700 },
    config: {
      ...{ defaultUser: 'me', defaultWorkdir: '/w', buildEnv: { A: 'b' } },
      ...{ startCommand: 'start', readyCommand: 'ready', started },
    },
  });
  expect([told, measured, logged]).toEqual([[`forget ${buildId}`], ['ready'], []]);
  const plain = await build();
  await following().follow(plain);
  expect((await findBuild(db, plain))?.config).toEqual({
    ...{ defaultUser: 'me', defaultWorkdir: '/w', buildEnv: { A: 'b' } },
  });
});

test('a failed build says at which step, if at one', async () => {
  for (const reason of [{ message: 'no' }, { message: 'no', step: '2' }]) {
    const buildId = await build();
    const { follow, measured } = following(next => ({ entries: [], next, result: { status: 'error', ...reason } }));
    await follow(buildId);
    expect(await findBuild(db, buildId)).toMatchObject({ status: 'error', reason });
    expect((await findBuild(db, buildId))?.reason).toEqual(reason);
    expect(measured).toEqual(['error']);
  }
});

test('the log continues where it was, piece by piece', async () => {
  const buildId = await build();
  await appendBuildLog(db, buildId, 0, [line('zero'), line('one')]);
  const asked: number[] = [];
  const { follow } = following((after, times) => {
    asked.push(after);
    if (times === 3) return { entries: [], next: after, result: ready };
    return { entries: [line(`at ${after}`)], next: after + 1 };
  });
  await follow(buildId);
  expect(asked).toEqual([2, 3, 4]);
  const messages = (await readBuildLog(db, buildId, { limit: 10 })).map(({ message }) => message);
  expect(messages).toEqual(['zero', 'one', 'at 2', 'at 3']);
});

test('a build that its node does not know has ended with the node’s process', async () => {
  const buildId = await build();
  const { follow, told } = following(() => Promise.reject(new AtollError('not_found', 'unknown')));
  await follow(buildId);
  expect(await findBuild(db, buildId)).toMatchObject({
    status: 'error',
    reason: { message: 'The platform was restarted while the build ran; start it again' },
  });
  expect(told).toEqual([]);
});

test('a node that does not answer is asked thirty more times, and each answer starts the count again', async () => {
  const away = new AtollError('unavailable', 'away');
  const buildId = await build();
  const { follow, logged, asked } = following(() => Promise.reject(away));
  await follow(buildId);
  expect([asked(), (await findBuild(db, buildId))?.status]).toEqual([31, 'building']);
  expect(logged).toEqual([expect.stringContaining('a build could not be followed to its end')]);
  const again = following((next, times) => {
    if (times === 31) return { entries: [], next };
    if (times < 62) throw away;
    return { entries: [], next, result: ready };
  });
  await again.follow(buildId);
  expect([(await findBuild(db, buildId))?.status, again.logged]).toEqual(['ready', []]);
});

test('a build that was deleted with its template is ended on its node', async () => {
  const gone = newUuid();
  const { follow, told, asked } = following();
  await follow(gone);
  const dropped = (buildId: string) => [`cancel ${buildId}: The template was deleted`, `forget ${buildId}`];
  expect([told, asked()]).toEqual([dropped(gone), 0]);
  // The same while it is followed.
  const buildId = await build();
  const going = following(async () => {
    await db.deleteFrom('builds').where('build_id', '=', buildId).execute();
    throw new AtollError('unavailable', 'away');
  });
  await going.follow(buildId);
  expect([going.told, going.asked(), going.logged]).toEqual([dropped(buildId), 1, []]);
  // The same at its end: there is nothing to publish.
  const ending = await build();
  const late = following(async next => {
    await db.deleteFrom('builds').where('build_id', '=', ending).execute();
    return { entries: [], next, result: ready };
  });
  await late.follow(ending);
  expect([late.told, late.logged]).toEqual([[`forget ${ending}`], []]);
});

test('a build is followed by one process, once', async () => {
  const buildId = await build();
  await enterReplica(db, { replicaId: 'there', name: 'there' }, it.nowUs + 1);
  await db.updateTable('builds').set({ replica_id: 'there' }).where('build_id', '=', buildId).execute();
  const { follow, deps, asked, told } = following();
  await follow(buildId);
  expect([asked(), told]).toEqual([0, []]);
  it.nowUs += 2;
  followBuild(deps, buildId);
  followBuild(deps, buildId);
  await deps.followedBuilds.settled();
  expect(asked()).toBe(1);
});

test('a process that stops leaves its builds as they are', async () => {
  const buildId = await build();
  const { follow, stopped, asked } = following(next => {
    stopped.abort();
    return { entries: [], next };
  });
  await follow(buildId);
  expect([asked(), (await findBuild(db, buildId))?.status]).toEqual([1, 'building']);
});

test('after a start the running builds are followed', async () => {
  await db.deleteFrom('builds').execute();
  const [running, waiting] = [await build(), await build(templateId, false)];
  const { deps } = following();
  await reconcileBuilds(deps);
  await deps.followedBuilds.settled();
  const statuses = await Promise.all([running, waiting].map(async id => (await findBuild(db, id))?.status));
  expect(statuses).toEqual(['ready', 'waiting']);
});

test('builds of a template or a team are ended, in the store and on the node', async () => {
  await db.deleteFrom('builds').execute();
  const [second, foreign] = [await templateOf(team), await templateOf(other)];
  const ids = [await build(), await build(templateId, false), await build(second), await build(foreign)];
  const { deps, told } = following();
  const statuses = () => Promise.all(ids.map(async id => (await findBuild(db, id))?.status));
  expect(await cancelBuildsOf(deps, { templateId }, 'by hand')).toBe(2);
  expect(await statuses()).toEqual(['error', 'error', 'building', 'building']);
  expect(told.toSorted()).toEqual(
    ids
      .slice(0, 2)
      .map(id => `cancel ${id}: by hand`)
      .toSorted(),
  );
  expect((await findBuild(db, ids[0] ?? ''))?.reason).toEqual({ message: 'by hand' });
  expect(await cancelBuildsOf(deps, { teamId: team.teamId }, 'the team is gone')).toBe(1);
  expect(await statuses()).toEqual(['error', 'error', 'error', 'building']);
});

test('nodes forget what a template has built within the last minute, as far as they answer', async () => {
  await db.deleteFrom('builds').execute();
  const { deps, told, follow } = following();
  const ids: string[] = [];
  for (const afterUs of [0, 60_000_001, 0]) {
    it.nowUs += afterUs;
    const buildId = await build();
    await follow(buildId);
    ids.push(buildId);
  }
  await build();
  told.length = 0;
  const forget = deps.builder.forget.bind(deps.builder);
  deps.builder.forget = async buildId => {
    await forget(buildId);
    throw new AtollError('unavailable', 'away');
  };
  await forgetBuildsOf(deps, templateId);
  expect(told.toSorted()).toEqual(
    ids
      .slice(1)
      .map(id => `forget ${id}`)
      .toSorted(),
  );
});
