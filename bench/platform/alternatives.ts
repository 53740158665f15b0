import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { summarize, timeEach, type Summary } from '../measure/statistics.ts';

export type Alternative = { name: string; summary: Summary } | { name: string; missing: string };

const runs = 30;

/**
 * What a user would pick instead, doing the least that compares: start something isolated from the host's own root and
 * run `true` in it to its end. `fork+exec` is the floor below which no way can be.
 */
export async function alternatives(): Promise<Alternative[]> {
  const work = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
  try {
    return [
      await measure('fork + exec', ['/bin/true']),
      await measure('bwrap', ['bwrap', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--unshare-all', '/bin/true']),
      await measure('crun run', ['crun', '--root', join(work, 'state'), 'run', '--bundle', bundle(work), 'atoll-bench'], inOwnCgroupView),
      await measure('runsc run', ['runsc', '--root', join(work, 'runsc'), '--ignore-cgroups', '--network=none', 'run', '--bundle', bundle(work), 'atoll-bench']),
      await measure('docker run', ['docker', 'run', '--rm', 'debian:bookworm', 'true']),
    ];
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** crun refuses hosts where cgroup2 is mounted beside v1 controllers, unless it does not see it. */
const inOwnCgroupView = (argv: string[]) => [
  'unshare', '--mount', '--propagation', 'private', 'sh', '-c',
  'if [ -e /sys/fs/cgroup/memory/tasks ] && [ -e /sys/fs/cgroup/unified ]; then mount -t tmpfs none /sys/fs/cgroup/unified; fi; exec "$@"', 'sh', ...argv,
];

async function measure(name: string, argv: string[], wrap: (argv: string[]) => string[] = same => same): Promise<Alternative> {
  if (!Bun.which(argv[0] as string)) return { name, missing: 'not installed' };
  const command = wrap(argv);
  const run = async () => {
    const child = Bun.spawn(command, { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' });
    const text = await new Response(child.stderr).text();
    if ((await child.exited) !== 0) throw new Error(text.trim().split('\n').at(-1) ?? 'failed');
  };
  try {
    await run();
    return { name, summary: summarize(await timeEach(runs, run)) };
  } catch (error) {
    return { name, missing: error instanceof Error ? error.message : String(error) };
  }
}

/** The plainest container: the host's programs read-only, namespaces, no limits. */
function bundle(work: string): string {
  const directory = join(work, 'bundle');
  const root = join(directory, 'root');
  for (const name of ['usr', 'proc', 'dev', 'etc']) mkdirSync(join(root, name), { recursive: true });
  const mount = (destination: string, type: string, source: string, ...options: string[]) => ({ destination, type, source, options });
  writeFileSync(
    join(directory, 'config.json'),
    JSON.stringify({
      ociVersion: '1.0.2',
      process: { user: { uid: 0, gid: 0 }, args: ['/usr/bin/true'], env: ['PATH=/usr/bin'], cwd: '/' },
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
