import { afterEach, beforeEach, expect, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { draftMemory } from './checkpoint.ts';
import type { CheckpointSource } from './checkpoint-source.ts';
import { criuKilled, findCriu, learnKernel, quote, runCriu, sandboxEnded, type CriuHost } from './criu.ts';
import { dump } from './dump.ts';

// CRIU itself is tested in test/snapshot. Here a program of the test stands in for it.

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-dump-'));
  writeFileSync(join(folder, 'helper'), 'the helper');
  mkdirSync(join(folder, 'run'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** What one run of CRIU does: the stages that it reports, its log, and how it ends. */
type Run = {
  stages?: string[];
  log?: string;
  status?: number;
  output?: string;
  /** It ends then, whatever its stages do. */
  until?: Promise<void>;
};

/**
 * A host whose CRIU does these runs, one after another, and then repeats the last one. `undo`: the exit status of the
 * undoing.
 */
function hostOf(runs: Run[], { undo = 0, watch = 0, look = 0 } = {}) {
  const [did, answers, configs]: [string[], string[], string[]] = [[], [], []];
  let round = 0;
  const helper = {
    async spawn(argv: string[], { kind }: { kind?: string }) {
      const [, verb = ''] = argv;
      if (verb === 'look-for-nameless') return { status: look, output: look === 0 ? '0 0 0\n' : '' };
      if (verb === 'watch-paths') {
        did.push('watch paths');
        return { status: watch, output: 'it can’t\n' };
      }
      if (verb === 'undo-dump') {
        did.push(`undo of ${readFileSync(argv[3] ?? '', 'utf8')}`);
        return { status: undo, output: 'it can’t\n' };
      }
      if (verb === 'learn-kernel') return { status: watch, output: 'it can’t\n' };
      const {
        stages = ['post-dump 0'],
        log = '',
        status = 0,
        output = '',
        until,
      } = runs[Math.min(round++, runs.length - 1)] ?? {};
      did.push(`${kind} ${argv.includes('restore') ? 'restore' : 'dump'}`);
      configs.push(readFileSync(argv.at(-1) ?? '', 'utf8'));
      const socket = argv.find(part => part.startsWith('ATOLL_CRIU_SOCKET='))?.split('=')[1] ?? '';
      for (const stage of stages) {
        const told = report(socket, stage).then(answer => void answers.push(answer));
        await (until ?? told);
      }
      if (log !== '') writeFileSync(join(folder, 'run', 'one.log'), log);
      return { status: answers.includes('n') && status === 0 ? 255 : status, output };
    },
  };
  const host = {
    ...{ helper, helperBinary: join(folder, 'helper'), criu: { argv: ['criu'], version: '4', source: '' } },
    ...{ runDir: join(folder, 'run'), programDir: join(folder, 'programs') },
    hurry: () => ({ [Symbol.dispose]: () => void did.push('no hurry') }),
  } as unknown as CriuHost;
  return { host, did, answers, configs };
}

/** Reports a stage like CRIU's action script, and answers what it was told: `y`, `n`, or nothing. */
async function report(path: string, line: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let told = '';
  await Bun.connect({
    unix: path,
    socket: {
      open: socket => void socket.write(`${line}\n`),
      data: (_, bytes) => void (told += bytes.toString()),
      close: () => resolve(told),
    },
  });
  return promise;
}

const runOf = (host: CriuHost, stages: Parameters<typeof runCriu>[1]['stages'], command: 'dump' | 'restore' = 'dump') =>
  runCriu(host, { command, name: 'one', imagesDir: folder, options: ['tree 7'], stages });
const left = () => readdirSync(join(folder, 'run')).sort();
const error = (code: string, message: string, more: object = {}) =>
  expect.objectContaining({ code, message: expect.stringContaining(message), ...more }) as unknown;
const commit = async () => {};

test('CRIU gets its settings in a file and a yes at each stage, and leaves nothing behind', async () => {
  const { host, answers, configs, did } = hostOf([
    { stages: ['setup-namespaces 7', 'post-restore 8', 'pre-resume 9', 'post-dump 0'] },
  ]);
  const heard: unknown[] = [];
  await runOf(host, {
    'setup-namespaces': async pid => void heard.push(pid),
    'post-restore': async pid => void heard.push(pid),
    'pre-resume': async pid => void heard.push(pid),
    'post-dump': async () => void heard.push('dumped'),
  });
  expect([answers, heard]).toEqual([
    ['y', 'y', 'y', 'y'],
    [7, 8, 9, 'dumped'],
  ]);
  expect(configs[0]?.split('\n')).toContain('tree 7');
  expect(configs[0]?.split('\n')).toContain(`log-file ${join(folder, 'run', 'one.log')}`);
  expect([left(), did]).toEqual([[], ['dump dump', 'no hurry']]);
  // The program that compresses nothing stands in for gzip, and every user can run it.
  expect(readFileSync(join(folder, 'programs/gzip'), 'utf8')).toBe('the helper');
  expect(statSync(join(folder, 'programs/gzip')).mode & 0o777).toBe(0o755);
  await runOf(host, {}, 'restore');
  expect(did).toContain('start restore');
});

test('a stage that fails, or that nobody knows, is answered with no, and its error is the run’s', async () => {
  const failing = hostOf([{}]);
  const gone = () => Promise.reject(new AtollError('no_space', 'the disk is full'));
  await expect(runOf(failing.host, { 'post-dump': gone })).rejects.toEqual(error('no_space', 'the disk is full'));
  expect([failing.answers, left()]).toEqual([['n'], []]);
  const unknown = hostOf([{ stages: ['pre-dump 0'] }]);
  await expect(runOf(unknown.host, {})).rejects.toEqual(error('internal', 'an unknown stage: pre-dump'));
  // A line that the action script would not send is not read to its end.
  const long = hostOf([{ stages: ['x'.repeat(100)] }]);
  await runOf(long.host, {});
  expect(long.answers).toEqual(['']);
});

test('the error shows the first errors of CRIU’s log', async () => {
  const errors = Array.from({ length: 8 }, (_, at) => `(00.1) Error (criu/mem.c:${at}): reason ${at}`);
  const before = [
    '(00.0) Warn  (criu/x.c:1): else',
    "(00.0) Error (criu/rlimit.c:16): rlimit: Can't setup RLIMIT_NOFILE for self: Operation not permitted",
  ];
  const { host } = hostOf([{ status: 255, log: [...before, ...errors].join('\n') }]);
  const said = 'can’t be kept: reason 0; reason 1; reason 2; reason 3; reason 4; reason 5';
  await expect(runOf(host, {})).rejects.toMatchObject({
    ...{ code: 'unavailable', detail: 'checkpoint_failed', message: expect.stringMatching(new RegExp(`${said}$`)) },
  });
  await expect(runOf(hostOf([{ status: 1 }]).host, {}, 'restore')).rejects.toEqual(
    error('unavailable', 'can’t be put back: CRIU failed without a word'),
  );
  expect(left()).toEqual([]);
});

test('of a CRIU that was killed in a dump the mark stays, and that says nothing of a restore', async () => {
  for (const [status, wasKilled] of [
    [128 + 9, true],
    [128 + 64, true],
    [128, false],
    [128 + 65, false],
  ] as const) {
    const { host } = hostOf([{ status }]);
    const detail = wasKilled ? criuKilled : 'checkpoint_failed';
    const message = expect.stringContaining(
      wasKilled ? `by signal ${status - 128} before` : 'without a word',
    ) as string;
    await expect(runOf(host, {})).rejects.toMatchObject({ detail, message });
    expect(left()).toEqual(wasKilled ? ['one.conf'] : []);
    rmSync(join(folder, 'run', 'one.conf'), { force: true });
  }
  await expect(runOf(hostOf([{ status: 128 + 9 }]).host, {}, 'restore')).rejects.toEqual(
    error('unavailable', 'was put back', { detail: 'part_lost' }),
  );
  expect(left()).toEqual([]);
});

test('a dump may compute for so long as what it writes down takes, and is its team’s', async () => {
  const { host, did } = hostOf([{ status: 128 + 24, stages: [] }]);
  const asked: unknown[] = [];
  const { spawn } = host.helper;
  host.helper.spawn = (argv, options) => {
    const begin = argv.includes('prlimit') ? argv.indexOf('prlimit') : 1;
    if (options.kind === 'dump') asked.push([...argv.slice(begin, begin + 2), options.teamId]);
    return spawn(argv, options);
  };
  const dumped = dump(host, sourceOf(did), options(), { end: false, final: false, commit });
  const message = 'takes more than 123 s of computing';
  await expect(dumped).rejects.toEqual(error('precondition', message, { detail: criuKilled }));
  expect(asked).toEqual([
    ['look-for-nameless', '100000', 'team'],
    ['watch-paths', String(process.pid), 'team'],
    ['prlimit', '--cpu=123', 'team'],
  ]);
  expect([did.filter(what => what === 'dump dump').length, did.at(-1), left()]).toEqual([1, 'undo of 7\n8', []]);
});

test('a run whose CRIU was killed in a stage ends when the stage has', async () => {
  const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { host } = hostOf([{ status: 128 + 9, until: begun.promise }]);
  let isOver = false;
  const stage = async () => {
    begun.resolve();
    await gate.promise;
    isOver = true;
  };
  const run = runOf(host, { 'post-dump': stage });
  void begun.promise.then(async () => {
    for (let turn = 0; turn < 200; turn++) await Promise.resolve();
    gate.resolve();
  });
  const wasOver = run.catch(({ detail }: AtollError) => [detail, isOver]);
  expect((await wasOver) as unknown).toEqual([criuKilled, true]);
});

/** A sandbox of which only the process is known: this process. */
function sourceOf(did: string[]): CheckpointSource {
  const group = {
    freeze: async () => void did.push('freeze'),
    thaw: () => void did.push('thaw'),
    processes: () => [7, 8],
  };
  const root = { layers: [], volumes: [], disk: '', diskMount: '' };
  return {
    pid: process.pid,
    teamId: 'team',
    memoryBytes: () => 3 << 29,
    group,
    ...root,
  } as unknown as CheckpointSource;
}
const options = () => ({ directory: join(folder, 'snapshot'), name: 'one', facts: {} });
const looks = ['freeze', 'watch paths', 'thaw'];

test('a dump that CRIU could not do is undone and tried again, twice', async () => {
  const { host, did } = hostOf([{ status: 255, stages: [] }]);
  const dumped = dump(host, sourceOf(did), options(), { end: false, final: false, commit });
  await expect(dumped).rejects.toMatchObject({ detail: 'checkpoint_failed' });
  const attempt = [...looks, 'dump dump', 'no hurry', 'thaw', 'undo of 7\n8'];
  expect([did, left()]).toEqual([[...attempt, ...attempt, ...attempt], []]);
  const later = hostOf([{ status: 255, stages: [] }, {}]);
  await dump(later.host, sourceOf(later.did), options(), { end: false, final: false, commit });
  expect(later.did).toEqual([...attempt, ...looks, 'dump dump', 'no hurry']);
  expect(later.configs.map(config => config.split('\n').includes('leave-running'))).toEqual([true, true]);
});

test('a dump that ends the sandbox leaves none running', async () => {
  const { host, did, configs } = hostOf([{}]);
  await dump(host, sourceOf(did), options(), { end: true, final: true, commit });
  expect(configs[0]).not.toContain('leave-running');
});

test('a dump whose commit fails is undone and not tried again', async () => {
  const { host, did } = hostOf([{}]);
  const failing = () => Promise.reject(new AtollError('no_space', 'the disk is full'));
  const dumped = dump(host, sourceOf(did), options(), { end: true, final: true, commit: failing });
  await expect(dumped).rejects.toEqual(error('no_space', 'the disk is full'));
  expect(did).toEqual([...looks, 'dump dump', 'no hurry', 'thaw', 'undo of 7\n8']);
});

test('after a final commit nothing is undone: what has run would be of the past', async () => {
  for (const [final, undone] of [
    [true, []],
    [false, ['thaw', 'undo of 7\n8']],
  ] as const) {
    const { host, did } = hostOf([{ status: 128 + 9 }]);
    await expect(dump(host, sourceOf(did), options(), { end: final, final, commit })).rejects.toMatchObject({
      detail: criuKilled,
    });
    expect(did).toEqual([...looks, 'dump dump', 'no hurry', ...undone]);
    // Whoever finds the mark later undoes the dump; once that is done there is no mark.
    expect(left()).toEqual(final ? ['one.conf'] : []);
    rmSync(join(folder, 'run', 'one.conf'), { force: true });
  }
});

test('a sandbox whose first process ended with its CRIU is reported as ended', async () => {
  const { host, did } = hostOf([{ status: 128 + 9, stages: [] }], { undo: 3 });
  const dumped = dump(host, sourceOf(did), options(), { end: false, final: false, commit });
  await expect(dumped).rejects.toMatchObject({ code: 'unavailable', detail: sandboxEnded });
  const stuck = hostOf([{ status: 128 + 9, stages: [] }], { undo: 1 });
  const other = dump(stuck.host, sourceOf(stuck.did), options(), { end: false, final: false, commit });
  await expect(other).rejects.toEqual(error('internal', 'could not be undone: it can’t'));
});

test('a sandbox whose watches can’t be found is let go and not dumped', async () => {
  const { host, did } = hostOf([{}], { watch: 1 });
  const dumped = dump(host, sourceOf(did), options(), { end: false, final: false, commit });
  await expect(dumped).rejects.toEqual(error('unavailable', "file watches can't be kept: it can’t"));
  expect([did, left()]).toEqual([looks, []]);
});

test('a sandbox whose processes can’t be looked at is not frozen and not dumped', async () => {
  const { host, did } = hostOf([{}], { look: 137 });
  const dumped = dump(host, sourceOf(did), options(), { end: false, final: false, commit });
  await expect(dumped).rejects.toEqual(error('unavailable', 'what its processes have mapped can’t be looked at'));
  expect([did, left()]).toEqual([[], []]);
});

test('a caller that gives up before a dump, or before its end, gets none', async () => {
  const given = new AbortController();
  const { host, did } = hostOf([{}]);
  const abort = { ...options(), signal: given.signal };
  let committed = false;
  const dumped = dump(host, sourceOf(did), abort, {
    end: false,
    final: false,
    commit: async () => void (committed = true),
  });
  given.abort(new AtollError('canceled', 'given up'));
  await expect(dumped).rejects.toEqual(error('canceled', 'given up'));
  did.length = 0;
  await expect(dump(host, sourceOf(did), abort, { end: false, final: false, commit })).rejects.toThrow('given up');
  expect([did, committed]).toEqual([[], false]);
});

test('a draft gets its name when it is whole, and a failed one leaves nothing', async () => {
  const whole = hostOf([{}]);
  await draftMemory(whole.host, sourceOf(whole.did), options());
  expect([existsSync(join(folder, 'snapshot')), existsSync(join(folder, 'snapshot.partial'))]).toEqual([true, false]);
  rmSync(join(folder, 'snapshot'), { recursive: true });
  const failing = hostOf([{ status: 255, stages: [] }]);
  await expect(draftMemory(failing.host, sourceOf(failing.did), options())).rejects.toThrow('can’t be kept');
  expect([existsSync(join(folder, 'snapshot')), existsSync(join(folder, 'snapshot.partial'))]).toEqual([false, false]);
});

test('CRIU is found where set-up has put it, or the reason why there is none', () => {
  expect(() => findCriu(folder)).toThrow(error('unavailable', 'CRIU was not set up') as Error);
  const setUp = (content: object) => writeFileSync(join(folder, 'criu.json'), JSON.stringify(content));
  setUp({ reason: 'the kernel is too old' });
  expect(() => findCriu(folder)).toThrow(error('unavailable', 'the kernel is too old') as Error);
  setUp({ argv: ['{}/ld.so', '{}/criu'], version: '4.1', source: 'x' });
  expect(findCriu(folder)).toEqual({ argv: [`${folder}/ld.so`, `${folder}/criu`], version: '4.1', source: 'x' });
});

test('a kernel that CRIU can’t work with is reported', async () => {
  await learnKernel(hostOf([]).host);
  await expect(learnKernel(hostOf([], { watch: 1 }).host)).rejects.toEqual(
    error('unavailable', 'with this kernel: it can’t'),
  );
});

test('a path that CRIU’s settings can’t hold is refused', () => {
  expect([quote('/a/b'), quote('/a b'), quote('/a#b')]).toEqual(['/a/b', '"/a b"', '"/a#b"']);
  for (const path of ['/a"b', '/a\\b', '/a\nb'])
    expect(() => quote(path)).toThrow(error('invalid', "can't be") as Error);
});
