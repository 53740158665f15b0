import { afterAll, expect, test } from 'bun:test';
import { newUuid } from '../../../base/id.ts';
import { openStore } from '../../database/database.ts';
import type { TeamLimits } from '../../team/record.ts';
import { limitsFrom } from '../../team/rules/limits.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { templateById } from '../../template/store/resolve.ts';
import { findBuild } from '../store/read.ts';
import { moveBuild } from '../store/write.ts';
import { type AskedBuild, registerBuild, registerBuildOf } from './register.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
const clock = () => 1e15;
const slug = () => `t${newUuid().slice(0, 8)}`;
const newTeam = () => createTeam({ db, clock }, { name: 'T', slug: slug() });
const team = await newTeam();
const depsOf = (limits: Partial<TeamLimits> = {}) => ({ clock, db, limitsOf: limitsFrom(limits) });
const register = (asked: AskedBuild, limits: Partial<TeamLimits> = {}, of = team) =>
  registerBuild(depsOf(limits), of, asked);
const statusOf = async (buildId: string) => (await findBuild(db, buildId))?.status;

test('a registered build waits, and its template is made if the name is new', async () => {
  const { template, buildId, name, tags } = await register({ name: 'new' });
  expect([name, tags]).toEqual(['new', ['default']]);
  expect(await templateById(db, template.templateId)).toMatchObject({ teamId: team.teamId, public: false });
  expect(await findBuild(db, buildId)).toMatchObject({
    ...{ status: 'waiting', templateId: template.templateId, request: null, cpuCount: 2, memoryMiB: 1024 },
    diskMiB: 10_240,
  });
  const again = await register({ name: `${team.slug}/new`, request: { dockerfile: 'FROM x' } as never });
  expect(again.template.templateId).toBe(template.templateId);
  expect((await findBuild(db, again.buildId))?.request).toMatchObject({ dockerfile: 'FROM x' });
});

test('a name is required, in the team’s own namespace, and not an ID', async () => {
  const { template } = await register({ name: 'known' });
  const refused: [AskedBuild, string, string][] = [
    [{}, 'invalid', 'name: is required'],
    [{ name: '  ' }, 'invalid', 'name: is required'],
    [{ name: 'others/x' }, 'invalid', `name: the namespace "others" is not your team's ("${team.slug}")`],
    [{ name: template.templateId }, 'conflict', `name: "${template.templateId}" is the ID of a template`],
  ];
  for (const [asked, code, message] of refused) await expect(register(asked)).rejects.toMatchObject({ code, message });
});

test('tags are those of the name and of the list, each once', async () => {
  expect((await register({ name: 'tagged:v1', tags: ['V2', 'v1'] })).tags).toEqual(['v1', 'v2']);
  expect((await register({ name: 'tagged', tags: ['v3'] })).tags).toEqual(['v3']);
});

test('waiting builds of the same template and tags are superseded, and running ones go on', async () => {
  const [waits, runs, elsewhere, others] = [
    await register({ name: 'rival:a' }),
    await register({ name: 'rival:b' }),
    await register({ name: 'rival:c' }),
    await register({ name: 'another:a' }),
  ];
  await moveBuild(db, runs.buildId, 'waiting', 'building', 1);
  await register({ name: 'rival', tags: ['a', 'b'] });
  expect(await findBuild(db, waits.buildId)).toMatchObject({
    ...{ status: 'error', reason: { message: 'A newer build of the same template and tags was registered' } },
  });
  expect(await Promise.all([runs, elsewhere, others].map(({ buildId }) => statusOf(buildId)))).toEqual([
    ...['building', 'waiting', 'waiting'],
  ] as never);
});

test('sizes are as requested, within the limits of the team', async () => {
  const sizes = async (asked: AskedBuild, limits: Partial<TeamLimits> = {}) => {
    const build = await findBuild(db, (await register({ name: 'sized', ...asked }, limits)).buildId);
    return [build?.cpuCount, build?.memoryMiB, build?.diskMiB];
  };
  expect(await sizes({ cpuCount: 8, memoryMiB: 8192, freeDiskMiB: 20_480 })).toEqual([8, 8192, 20_480]);
  expect(await sizes({ cpuCount: 1, memoryMiB: 128, freeDiskMiB: 5 })).toEqual([1, 128, 10_240]);
  // A request for more disk is not refused but reduced, and the default always fits.
  expect(await sizes({ freeDiskMiB: 99_999 })).toEqual([2, 1024, 20_480]);
  expect(await sizes({}, { cpuCount: 1, memoryMiB: 512, diskMiB: 1000 })).toEqual([1, 512, 1000]);
  const refused: [AskedBuild, string][] = [
    [{ cpuCount: 3 }, 'cpuCount: must be 1 or an even number'],
    [{ cpuCount: 10 }, 'cpuCount: the team may use up to 8'],
    [{ memoryMiB: 513 }, 'memoryMB: must be an even number from 128 on'],
    [{ memoryMiB: 126 }, 'memoryMB: must be an even number from 128 on'],
    [{ memoryMiB: 8194 }, 'memoryMB: the team may use up to 8192'],
  ];
  for (const [asked, message] of refused)
    await expect(register({ name: 'sized', ...asked })).rejects.toMatchObject({ code: 'invalid', message });
});

test('a team has no builds and templates beyond its limits, and enough running builds refuse another', async () => {
  const of = await newTeam();
  const limited = (name: string, limits: Partial<TeamLimits>) => register({ name }, limits, of);
  const full = (says: string) => ({ code: 'rate_limited', message: expect.stringContaining(says) });
  const { buildId, template } = await limited('one', { templates: 1 });
  await expect(limited('two', { templates: 1 })).rejects.toMatchObject(full('1 template'));
  await limited('one', { templates: 1 });
  await expect(limited('one', { builds: 2 })).resolves.toBeDefined();
  await moveBuild(db, buildId, 'waiting', 'building', 1);
  const last = await limited('one:other', {});
  await moveBuild(db, last.buildId, 'waiting', 'building', 1);
  const running = { concurrentBuilds: 1 };
  await expect(limited('one', running)).rejects.toMatchObject(full('The team has 1 build running, which is its limit'));
  await expect(registerBuildOf(depsOf(running), of, template, {})).rejects.toMatchObject(full('1 build running'));
  await limited('one', { concurrentBuilds: 2 });
  await expect(registerBuildOf(depsOf({ builds: 1 }), of, template, {})).resolves.toBeDefined();
});

test('another build of a template by its ID has the default tag, and its extra work', async () => {
  const { template } = await register({ name: 'by-id' });
  let inside: unknown;
  const request = { dockerfile: 'FROM x' } as never;
  const made = await registerBuildOf(depsOf(), team, template, { memoryMiB: 256, request }, async db => {
    inside = await db.selectFrom('builds').select('build_id').where('template_id', '=', template.templateId).execute();
  });
  expect(made).toMatchObject({ template, name: '', tags: ['default'] });
  expect(inside).toHaveLength(1);
  expect(await findBuild(db, made.buildId)).toMatchObject({ memoryMiB: 256, request });
  // If that fails, there is no build.
  const failing = registerBuildOf(depsOf(), team, template, {}, () => Promise.reject(new Error('not now')));
  await expect(failing).rejects.toThrow('not now');
  const builds = await db
    .selectFrom('builds')
    .select('build_id')
    .where('template_id', '=', template.templateId)
    .execute();
  expect(builds).toHaveLength(2);
});
