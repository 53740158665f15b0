import { afterEach, beforeEach, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { createLog } from '../../base/telemetry/log.ts';
import type { BuildState } from '../../protocol/build.ts';
import type { AgentProcess, OnOutput, ProcessEnd } from '../agent-client/process.ts';
import { createLayers } from '../layers/store.ts';
import type { Helper } from '../native/helper.ts';
import { createBuildBytes } from './build-bytes.ts';
import type { Build } from './build.ts';
import { createStepCache } from './cache/step-cache.ts';
import { runBuild, type BuildParts } from './run-build.ts';
import { scratchDirOf } from './scratch.ts';

let data = '';
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'atoll-run-build-'));
  mkdirSync(scratchDirOf({ data }));
});
afterEach(() => rmSync(data, { recursive: true, force: true }));

const digestOf = (content: string | Buffer) => `sha256:${createHash('sha256').update(content).digest('hex')}`;
const succeeded: ProcessEnd = { exitCode: 0, status: 'exit status 0' };
const env = (name: string) => ({ type: 'ENV', args: [name, 'value'], force: false });

/** A node on which builds run. `ends` says how a program in a sandbox ends, by a word of its command. */
async function node(options: { keeps?: boolean } = {}) {
  const said: string[] = [];
  const logged: string[] = [];
  const steps: string[] = [];
  const required: string[] = [];
  const opened: Record<string, unknown>[] = [];
  const ran: AgentProcess[] = [];
  const kept: object[] = [];
  const state = { ends: {} as Record<string, ProcessEnd | 'hangs'>, output: '', full: '', keepFails: false, closed: 0 };
  const layers = createLayers({
    helper: { call: () => Promise.resolve() } as unknown as Helper,
    dir: join(data, 'layers'),
    mounts: join(data, 'mounts'),
  });
  const layer = async (content: string) => {
    const made = await layers.make(image => {
      writeFileSync(image, content);
      return Promise.resolve(digestOf(content));
    });
    return made ?? '';
  };
  const run = (process: AgentProcess, onOutput: OnOutput): Promise<ProcessEnd> => {
    ran.push(process);
    onOutput('stdout', Buffer.from(state.output));
    const word = Object.keys(state.ends).find(word => process.argv[3]?.includes(word));
    const end = word === undefined ? succeeded : state.ends[word];
    if (end !== 'hangs') return Promise.resolve(end ?? succeeded);
    return new Promise((_, reject) => process.signal?.addEventListener('abort', () => reject(new Error('cut off'))));
  };
  const cancelled = new AbortController();
  const base: BuildState = { layers: [await layer('base')], env: { FROM: 'base' }, user: 'root', workdir: '/w' };
  const request = { teamId: 'team', templateId: 't', buildId: 'b', resources: { cpuCount: 2 }, driver: 'crun' };
  const build = (changes: object) =>
    ({
      request: { ...request, steps: [], ...changes },
      layers,
      bytes: createBuildBytes({ perBuild: 1e9, perTeam: 1e9, windowMs: 1 }, () => 0).begin('team'),
      cache: createStepCache(join(data, 'cache'), layers.has),
      builder: {
        run: ({ input = '', output = '' }: { input?: string; output?: string }) => {
          writeFileSync(output, readFileSync(input));
          return Promise.resolve({ bytes: 1, inodes: 1 });
        },
      },
      helper: { mountsPid: process.pid, call: () => Promise.resolve() },
      layout: { installation: 0, data, mounts: join(data, 'mounts') },
      limits: {},
      space: {
        require(what: string) {
          required.push(what);
          if (what === state.full) throw new AtollError('no_space', `no room for ${what}`);
        },
        signal: () => new AbortController().signal,
      },
      started: {
        areKept: () => options.keeps === true,
        find: (facts: object) => kept.find(known => Bun.deepEquals((known as { facts: object }).facts, facts)),
        async keep(_: unknown, facts: object) {
          if (state.keepFails) throw new AtollError('precondition', 'it can’t be kept');
          const started = { snapshotId: 'm', layers: [await layer('of the memory')], resources: {}, facts };
          kept.push(started);
          return started;
        },
      },
      openSandbox(given: Record<string, unknown>) {
        opened.push(given);
        return Promise.resolve({ run, [Symbol.asyncDispose]: () => Promise.resolve(void state.closed++) });
      },
      network: { internetAccess: true },
      nodeLog: createLog('debug', line => logged.push(line)),
      signal: cancelled.signal,
      forced: false,
      log: (line: string) => said.push(line),
    }) as unknown as Build;
  const parts = (changes: Partial<BuildParts> = {}): BuildParts => ({
    resolveSource: () => Promise.resolve({ state: base }),
    becomeDevContainer: (_, before) => Promise.resolve(before),
    ...changes,
  });
  const start = (changes: object = {}, of: Partial<BuildParts> = {}) =>
    runBuild(build(changes), parts(of), step => steps.push(step));
  return { start, said, logged, steps, required, opened, ran, state, base, layers, cancelled };
}

test('a build is its source, its steps, and the file that says which build it was', async () => {
  const it = await node();
  const result = await it.start({ steps: [env('A'), env('B')] });
  expect(result).toMatchObject({
    status: 'ready',
    state: { env: { FROM: 'base', A: 'value', B: 'value' }, user: 'root', workdir: '/w' },
    layersMiB: 1,
  });
  if (result.status !== 'ready') throw new Error('it is ready');
  expect(result.state.layers).toEqual([it.base.layers[0]!, expect.any(String) as unknown as string]);
  const origin = readFileSync(it.layers.imagePath(result.state.layers[1] ?? ''), 'utf8');
  expect(origin).toContain('ENV_ID=t\nTEMPLATE_ID=t\nBUILD_ID=b\n');
  for (const absent of ['startCommand', 'readyCommand', 'started']) expect(result).not.toHaveProperty(absent);
  expect(it.steps).toEqual(['base', '1', '2', 'finalize']);
  expect(it.required.filter(what => what !== 'a layer')).toEqual(['a build', 'another step', 'another step']);
  expect(it.said.at(-1)).toMatch(/^\[finalize\] ready in \d+\.\d s: 2 layers, 0\.0 MB$/);
  expect(it.opened).toEqual([]);
});

test('the failure of a build is its result, with the step at which it failed', async () => {
  const it = await node();
  const wrong = { type: 'RUN', args: [], force: false };
  expect(await it.start({ steps: [env('A'), wrong] })).toEqual({
    status: 'error',
    message: 'RUN needs a command',
    step: '2',
  });
  it.state.full = 'another step';
  expect(await it.start({ steps: [env('A')] })).toMatchObject({ message: 'no room for another step', step: '1' });
  it.state.full = 'a build';
  expect(await it.start()).toMatchObject({ message: 'no room for a build', step: 'base' });
  expect(it.logged).toEqual([]);
});

test('other work goes on between steps that never wait', async () => {
  const { start, steps } = await node();
  const seen = new Set<string | undefined>();
  let isOver = false;
  const look = () => {
    seen.add(steps.at(-1));
    if (!isOver) setImmediate(look);
  };
  look();
  const result = await start({ steps: Array.from({ length: 50 }, (_, index) => env(`V${index}`)) });
  isOver = true;
  expect(result.status).toBe('ready');
  expect(seen.size).toBeGreaterThan(40);
});

test('a failure of the platform is reported to its operator', async () => {
  const it = await node();
  const message = 'the platform could not carry out this step; its log has why';
  for (const error of [new Error('broken'), new AtollError('internal', 'broken')])
    expect(await it.start({}, { resolveSource: () => Promise.reject(error) })).toEqual({
      status: 'error',
      message,
      step: 'base',
    });
  expect(it.logged).toHaveLength(2);
  expect(JSON.parse(it.logged[0] ?? '')).toMatchObject({ level: 'error', buildId: 'b', error: 'broken' });
});

test('a build that is cancelled ends with that, before its next step', async () => {
  const it = await node();
  const resolveSource = () => {
    it.cancelled.abort(new AtollError('canceled', 'nobody wants it'));
    return Promise.resolve({ state: it.base });
  };
  expect(await it.start({ steps: [env('A')] }, { resolveSource })).toEqual({
    status: 'error',
    message: 'nobody wants it',
    step: 'base',
  });
});

test('a start command proves itself once, in a sandbox that has only the files of the build', async () => {
  const it = await node();
  it.state.output = 'serving\n';
  const commands = { startCommand: 'serve', readyCommand: 'is-ready' };
  expect(await it.start(commands)).toMatchObject({ status: 'ready', ...commands });
  expect(it.opened).toEqual([
    { ...it.base, env: {}, resources: { cpuCount: 2 }, driver: 'crun', network: { internetAccess: true } },
  ]);
  expect(it.ran.map(({ argv }) => argv[3])).toEqual(['serve', 'is-ready']);
  expect(it.ran[0]).toMatchObject({ user: 'root', cwd: '/w', env: { FROM: 'base' } });
  // The build has closed its connection to the program.
  expect(it.ran[0]?.signal?.aborted).toBe(true);
  expect(it.said).toContain('[finalize] waiting until ready: is-ready');
  expect(it.said.some(line => line.includes('serving'))).toBe(true);
  expect(it.state.closed).toBe(1);
  expect(await it.start(commands)).toMatchObject({ status: 'ready', ...commands });
  expect(it.opened).toHaveLength(1);
  expect(it.said).toContain('CACHED [finalize] starting: serve');
});

test('the start command of the source is the build’s where it names none', async () => {
  const it = await node();
  const resolveSource = () => Promise.resolve({ state: it.base, startCommand: 'serve-source' });
  expect(await it.start({ readyCommand: 'is-ready' }, { resolveSource })).toMatchObject({
    startCommand: 'serve-source',
  });
  expect(await it.start({ startCommand: 'own', readyCommand: 'r' }, { resolveSource })).toMatchObject({
    startCommand: 'own',
  });
});

test('a server that does not start fails the build, with the last that it said', async () => {
  const it = await node();
  it.state.ends = { serve: { exitCode: 1, status: 'exit status 1' }, 'is-ready': 'hangs' };
  it.state.output = 'its last words\n';
  const result = await it.start({ startCommand: 'serve', readyCommand: 'is-ready' });
  expect(result).toMatchObject({ status: 'error', step: 'finalize' });
  expect(result).toMatchObject({
    message: expect.stringMatching(/^the start command failed: exit status 1\n.*last words/),
  });
  expect(it.state.closed).toBe(1);
  expect(await it.start({ startCommand: 'serve' })).toMatchObject({ status: 'error', step: 'finalize' });
  expect(it.said).toContain('[finalize] waiting 20 s: no ready command says when the start command is ready');
});

test('a build that is cancelled while its server starts ends with that', async () => {
  const it = await node();
  it.state.ends = { 'is-ready': 'hangs' };
  const result = it.start({ readyCommand: 'is-ready' });
  while (it.ran.length < 1) await Bun.sleep(1);
  it.cancelled.abort(new AtollError('canceled', 'nobody wants it'));
  expect(await result).toEqual({ status: 'error', message: 'nobody wants it', step: 'finalize' });
});

test('if memory can be kept, the server is kept with it, for the files on which it has proved itself', async () => {
  const it = await node({ keeps: true });
  const commands = { startCommand: 'serve', readyCommand: 'is-ready' };
  const result = await it.start(commands);
  expect(result).toMatchObject({ status: 'ready', started: { snapshotId: 'm' } });
  if (result.status !== 'ready') throw new Error('it is ready');
  // The layer that keeps the memory has, beside its own files, the file that says which build it comes from.
  const origin = result.state.layers[1]!;
  expect(result.started?.layers).toEqual([digestOf('of the memory'), origin]);
  expect(it.said).toContain('[finalize] kept with its memory: sandboxes begin with it running');
  await it.start(commands);
  expect(it.opened).toHaveLength(1);
  expect(it.said).toContain('CACHED [finalize] starting: serve');
  await it.start({ ...commands, startCommand: 'serve another' });
  expect(it.opened).toHaveLength(2);
});

test('a server that can’t be kept is one that sandboxes start themselves', async () => {
  const it = await node({ keeps: true });
  it.state.keepFails = true;
  const result = await it.start({ startCommand: 'serve', readyCommand: 'is-ready' });
  expect(result.status).toBe('ready');
  expect(result).not.toHaveProperty('started');
  expect(it.said).toContain('[finalize] sandboxes start it themselves: it can’t be kept');
});
