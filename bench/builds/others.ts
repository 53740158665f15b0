import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

/** Another tool that people build images with. */
export type OtherBuilder = {
  name: string;
  /** Builds a Dockerfile without a context, using what earlier builds left in the cache. */
  build(dockerfile: string): Promise<void>;
  /** Disk that all its images and caches take. */
  bytes(): number;
  dispose(): void;
};

function run(argv: string[], options: { stdin?: Uint8Array } = {}): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(argv, { stdout: 'pipe', stderr: 'pipe', ...options });
  if (exitCode !== 0) throw new Error(`${argv.slice(0, 3).join(' ')}: ${stderr.toString().trim().slice(-500)}`);
  return stdout.toString();
}

/** buildah with a storage of its own, or why it is left out. Its steps run in a chroot, not isolated. */
export function buildah(dir: string): OtherBuilder | string {
  if (!Bun.which('buildah')) return 'not installed';
  const storage = join(dir, 'storage');
  mkdirSync(storage, { recursive: true });
  const buildahIn = (...args: string[]) =>
    run(['buildah', '--root', storage, '--runroot', join(dir, 'run'), '--storage-driver', 'overlay', ...args]);
  return {
    name: 'buildah (chroot)',
    async build(dockerfile) {
      const file = join(dir, 'Containerfile');
      await Bun.write(file, dockerfile);
      buildahIn(
        'bud',
        '--isolation',
        'chroot',
        '--tls-verify=false',
        '--layers',
        '-f',
        file,
        '-t',
        `bench-${Bun.hash(dockerfile).toString(36)}`,
        dir,
      );
    },
    // Its storage is mounted on itself, so it must be counted once.
    bytes: () => Number(run(['du', '--summarize', '--block-size=1', '--one-file-system', storage]).split('\t')[0]),
    dispose() {
      buildahIn('rmi', '--all', '--force');
      Bun.spawnSync(['umount', join(storage, 'overlay')]);
    },
  };
}

/** Docker, if a daemon answers; its cache is the machine's, so the image's layers are pulled into that. */
export function docker(): OtherBuilder | string {
  if (!Bun.which('docker')) return 'not installed';
  if (Bun.spawnSync(['docker', 'info'], { stdout: 'ignore', stderr: 'ignore' }).exitCode !== 0)
    return 'no daemon answers';
  const built: string[] = [];
  return {
    name: 'docker',
    async build(dockerfile) {
      const tag = `atoll-bench-${Bun.hash(dockerfile).toString(36)}`;
      run(['docker', 'build', '--quiet', '--tag', tag, '-'], { stdin: Buffer.from(dockerfile) });
      built.push(tag);
    },
    bytes: () =>
      run(['docker', 'system', 'df', '--format', '{{json .}}'])
        .split('\n')
        .filter(Boolean)
        .reduce((sum, line) => sum + bytesOf((JSON.parse(line) as { Size: string }).Size), 0),
    dispose: () => void run(['docker', 'image', 'rm', '--force', ...built]),
  };
}

function bytesOf(text: string): number {
  const [, number, unit = 'B'] = /^([\d.]+)\s*([kMGT]?B)/.exec(text) ?? [];
  return Number(number ?? 0) * 1000 ** ['B', 'kB', 'MB', 'GB', 'TB'].indexOf(unit);
}
