import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { silentLog } from '../../base/telemetry/log.ts';
import type { StartBuild } from '../../protocol/build.ts';
import type { Build } from './build.ts';
import { createBuilds } from './builds.ts';
import { createStepCache } from './cache/step-cache.ts';

let dir = '';
let stop = async () => {};
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), 'atoll-builds-'))));
afterEach(async () => {
  await stop();
  rmSync(dir, { recursive: true, force: true });
});

const gib = 2 ** 30;
const requestOf = (buildId: string, changes: object = {}) =>
  ({
    buildId,
    teamId: 'team',
    steps: [],
    source: { kind: 'image', image: 'debian' },
    force: false,
    ...changes,
  }) as unknown as StartBuild;

/** A node whose builds wait for their source until `fail` gives a reason, or they are cancelled. */
function node(changes: object = {}) {
  const running = new Map<string, { build: Build; fail(error: Error): void }>();
  const removed: string[] = [];
  const sizes: Record<string, number> = { here: 5, needed: 5, replaceable: 5 };
  const layers = {
    has: (digest: string) => digest in sizes,
    bytes: (digest: string) => sizes[digest] ?? 0,
    list: () => Object.keys(sizes),
    usedAtMs: () => 0,
    madeAtMs: () => 0,
    remove: (digest: string) => Promise.resolve(void (removed.push(digest), delete sizes[digest])),
  };
  const builds = createBuilds({
    node: {
      layers,
      builder: { run: ({ job }: { job: object }) => Promise.resolve(job) },
      space: { require() {} },
      sandboxes: { records: () => [], hasUnknown: () => false },
      nodeLog: silentLog,
    },
    cache: createStepCache(join(dir, 'cache'), layers.has),
    files: {},
    parts: {
      resolveSource(build: Build) {
        const { promise, reject } = Promise.withResolvers<never>();
        running.set(build.request.buildId, { build, fail: reject });
        build.signal.addEventListener('abort', () => reject(build.signal.reason));
        build.log('looking for it');
        return promise;
      },
    },
    authorities: 'PEM',
    network: { internetAccess: true },
    cachedFiles: () => [],
    cacheBytesMax: gib,
    layerBytesMax: gib,
    buildTimeoutMs: 60_000,
    concurrentMax: 2,
    limits: { bytesMax: 1000 },
    byteBounds: { perBuild: 1500, perTeam: 1e9, windowMs: 1e9 },
    ...changes,
  } as unknown as Parameters<typeof createBuilds>[0]);
  stop = () => builds.stop();
  return { ...builds, running, sizes, removed };
}

test('the progress of a build is reported to its end, until it is forgotten', async () => {
  const it = node();
  await it.start(requestOf('a'));
  await it.start(requestOf('a'));
  expect(it.running.size).toBe(1);
  const first = await it.progress('a', 0, 0);
  expect(first).toMatchObject({ entries: [{ message: 'looking for it', level: 'info', step: 'base' }], next: 1 });
  expect(first).not.toHaveProperty('result');
  await it.forget('a');
  const news = it.progress('a', 1, 60_000);
  it.running.get('a')?.fail(new AtollError('not_found', 'no such image'));
  const failed = { level: 'error', message: 'no such image', step: 'base' };
  expect(await news).toMatchObject({ entries: [failed] });
  const last = await it.progress('a', 2, 60_000);
  expect(last).toMatchObject({ entries: [], result: { status: 'error', message: 'no such image', step: 'base' } });
  expect(last).not.toHaveProperty('made');
  await it.forget('a');
  await expect(it.progress('a', 0, 0)).rejects.toMatchObject({ code: 'not_found' });
});

test('the builds at a time are limited, and those that have ended do not count', async () => {
  const it = node();
  await it.start(requestOf('a'));
  await it.start(requestOf('b'));
  await expect(it.start(requestOf('c'))).rejects.toMatchObject({ code: 'unavailable' });
  await it.cancel('a', 'nobody wants it');
  await it.start(requestOf('c'));
  expect([...it.running.keys()]).toEqual(['a', 'b', 'c']);
});

test('a build that is cancelled has ended when that is answered', async () => {
  const it = node();
  await it.start(requestOf('a'));
  await it.cancel('a', 'nobody wants it');
  expect((await it.progress('a', 1, 0)).result).toEqual({ status: 'error', message: 'nobody wants it', step: 'base' });
  await it.cancel('unknown', 'nobody wants it');
  await it.start(requestOf('b'));
  await it.stop();
  expect((await it.progress('b', 1, 0)).result).toMatchObject({ message: 'the platform was stopped' });
});

test('a build ends when its time is over', async () => {
  const it = node({ buildTimeoutMs: 30 });
  await it.start(requestOf('a'));
  const { build } = it.running.get('a')!;
  expect(Math.abs(build.deadlineMs - Date.now())).toBeLessThan(10_000);
  await new Promise(resolve => build.signal.addEventListener('abort', resolve));
  expect(build.signal.reason).toMatchObject({ code: 'deadline_exceeded' });
  expect((await it.progress('a', 1, 1000)).entries.at(-1)?.message).toContain('took longer than');
});

test('the next layer is bounded by what the build may still write', async () => {
  const it = node();
  await it.start(requestOf('a', { force: true }));
  const { build } = it.running.get('a')!;
  expect(build).toMatchObject({ forced: true, authorities: 'PEM', network: { internetAccess: true } });
  expect(build.limits).toEqual({ bytesMax: 1000 } as unknown as typeof build.limits);
  build.bytes.add(900);
  expect(build.limits.bytesMax).toBe(600);
  expect(build.questions).toBeUndefined();
});

test('a build that shares its steps asks, hears answers, and tells what it has made', async () => {
  const it = node();
  await it.start(requestOf('a', { sharesSteps: true }));
  const { build, fail } = it.running.get('a')!;
  const waiting = it.progress('a', 1, 60_000);
  const asked = build.questions?.ask('a-step', build.signal);
  expect(await waiting).toMatchObject({ entries: [], question: 'a-step' });
  // A reader that looks again gets it at once.
  expect(await it.progress('a', 1, 60_000)).toMatchObject({ question: 'a-step' });
  await it.answer('a', 'a-step', { layer: 'l' } as never);
  expect(await asked).toMatchObject({ layer: 'l' });
  expect(await it.progress('a', 1, 0)).not.toHaveProperty('question');
  fail(new AtollError('not_found', 'no such image'));
  await it.cancel('a', 'over');
  expect(await it.progress('a', 2, 0)).toMatchObject({ result: { status: 'error' }, made: [] });
  await expect(it.answer('unknown', 'a-step', undefined as never)).rejects.toMatchObject({ code: 'not_found' });
});

test('what running builds stand on is not collected', async () => {
  const it = node({ layerBytesMax: 0, cacheBytesMax: 0 });
  await it.start(requestOf('a', { source: { kind: 'state', state: { layers: ['needed'] } } }));
  await it.start(requestOf('b', { source: { kind: 'dockerfile', templates: { t: { layers: ['here'] } } } }));
  await it.collect([], []);
  expect(it.removed).not.toContain('needed');
  expect(it.removed).not.toContain('here');
  await it.stop();
  await it.collect([], []);
  expect(it.removed.sort()).toEqual(['here', 'needed', 'replaceable']);
});

test('sizes are reported for the layers that are here, and a builder reads Dockerfiles', async () => {
  const it = node();
  expect(await it.layerBytes(['here', 'elsewhere'])).toEqual({ here: 5 });
  expect(await it.readDockerfile('FROM debian')).toEqual({ kind: 'dockerfile', text: 'FROM debian' } as never);
});
