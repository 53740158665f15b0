import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runscDir } from '../../src/bin/repository.ts';
import { summarize, timeEach, type Summary } from '../measure/statistics.ts';

export type Alternative = { name: string; summary: Summary } | { name: string; missing: string };

/**
 * What a user would pick instead, doing the least that is comparable: it starts something isolated from the host's own
 * root and runs `true` in it to its end. `fork+exec` is the floor that nothing can beat.
 */
export async function alternatives(runs: number): Promise<Alternative[]> {
  const work = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
  try {
    const measure = (name: string, argv: string[], wrap?: Wrap) => measureRuns(runs, name, argv, wrap);
    const image = 'debian:bookworm';
    const crun = ['crun', '--root', join(work, 'state')];
    return [
      await measure('fork + exec', ['/bin/true']),
      await measure('bwrap', [
        'bwrap',
        '--ro-bind',
        '/',
        '/',
        '--proc',
        '/proc',
        '--dev',
        '/dev',
        '--unshare-all',
        '/bin/true',
      ]),
      await measure(
        'crun run',
        [...crun, 'run', '--bundle', bundle(work, ['/usr/bin/true']), 'atoll-bench'],
        inOwnCgroupView,
      ),
      await besides(
        inOwnCgroupView([
          ...crun,
          'run',
          '--detach',
          '--bundle',
          bundle(work, ['/usr/bin/sleep', '600']),
          'atoll-bench-exec',
        ]),
        () => measure('crun exec', [...crun, 'exec', 'atoll-bench-exec', '/usr/bin/true'], inOwnCgroupView),
        inOwnCgroupView([...crun, 'delete', '--force', 'atoll-bench-exec']),
      ),
      await measure('runsc run', [
        join(runscDir, 'runsc'),
        '--root',
        join(work, 'runsc'),
        '--ignore-cgroups',
        '--network=none',
        'run',
        '--bundle',
        bundle(work, ['/usr/bin/true']),
        'atoll-bench',
      ]),
      await measure('docker run', ['docker', 'run', '--rm', image, 'true']),
      await besides(
        ['docker', 'run', '--detach', '--name', 'atoll-bench-exec', image, 'sleep', '600'],
        () => measure('docker exec', ['docker', 'exec', 'atoll-bench-exec', 'true']),
        ['docker', 'rm', '--force', 'atoll-bench-exec'],
      ),
    ];
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

type Wrap = (argv: string[]) => string[];

/**
 * Pipes, and never /dev/null: container runtimes give their standard streams to the container's user, and so would give
 * away the host's device.
 */
const piped = { stdin: 'pipe', stdout: 'pipe', stderr: 'pipe' } as const;

/**
 * Measures while something else runs, which `end` removes; if that can't be started, the measurement itself says why.
 */
async function besides(start: string[], measured: () => Promise<Alternative>, end: string[]): Promise<Alternative> {
  const ran = Bun.which(start[0] as string) !== null && (await Bun.spawn(start, piped).exited) === 0;
  try {
    return await measured();
  } finally {
    if (ran) await Bun.spawn(end, piped).exited;
  }
}

/** crun refuses hosts that mount cgroup2 beside v1 controllers, unless it does not see cgroup2. */
const inOwnCgroupView = (argv: string[]) => [
  'unshare',
  '--mount',
  '--propagation',
  'private',
  'sh',
  '-c',
  'if [ -e /sys/fs/cgroup/memory/tasks ] && [ -e /sys/fs/cgroup/unified ]; then mount -t tmpfs none /sys/fs/cgroup/unified; fi; exec "$@"',
  'sh',
  ...argv,
];

async function measureRuns(
  runs: number,
  name: string,
  argv: string[],
  wrap: Wrap = same => same,
): Promise<Alternative> {
  if (!Bun.which(argv[0] as string)) return { name, missing: 'not installed' };
  const command = wrap(argv);
  const run = async () => {
    const child = Bun.spawn(command, piped);
    void child.stdin.end();
    const text = await new Response(child.stderr).text();
    if ((await child.exited) !== 0) throw new Error(text.trim().split('\n')[0] ?? 'failed');
  };
  try {
    await run();
    return { name, summary: summarize(await timeEach(runs, run)) };
  } catch (error) {
    return { name, missing: error instanceof Error ? error.message : String(error) };
  }
}

/** The plainest container: the host's programs read-only, namespaces, no limits. */
function bundle(work: string, args: string[]): string {
  const directory = join(work, `bundle-${args.length}`);
  const root = join(directory, 'root');
  for (const name of ['usr', 'proc', 'dev', 'etc']) mkdirSync(join(root, name), { recursive: true });
  const mount = (destination: string, type: string, source: string, ...options: string[]) => ({
    destination,
    type,
    source,
    options,
  });
  writeFileSync(
    join(directory, 'config.json'),
    JSON.stringify({
      ociVersion: '1.0.2',
      process: { user: { uid: 0, gid: 0 }, args, env: ['PATH=/usr/bin'], cwd: '/' },
      root: { path: root, readonly: false },
      mounts: [
        mount('/proc', 'proc', 'proc'),
        mount('/dev', 'tmpfs', 'tmpfs', 'mode=755'),
        mount('/usr', 'bind', '/usr', 'rbind', 'ro'),
        mount('/lib64', 'bind', '/usr/lib64', 'rbind', 'ro'),
        mount('/lib', 'bind', '/usr/lib', 'rbind', 'ro'),
      ],
      linux: { namespaces: ['pid', 'mount', 'ipc', 'uts', 'network'].map(type => ({ type })) },
    }),
  );
  return directory;
}
