import { join } from 'node:path';
import { parseDockerfile } from '../../src/api/app/dockerfile/parse.ts';
import type { BuildState } from '../../src/protocol/build.ts';
import { startBuildNode, step, type BuildNode } from '../../test/builds/support/build-node.ts';
import { makeImage, pushImage, writeLayout } from '../../test/builds/support/oci-image.ts';
import { startRegistry } from '../../test/builds/support/registry.ts';
import { scratch } from '../../test/builds/support/scratch.ts';

// Measures the builder beside buildah, where that is installed: `bun bench/builds/run.ts`. Writes a table in Markdown.

/** What people's files do, without a network: a system, files, a compiler, small changes at the end. */
const dockerfile = (image: string, last: string) => `FROM ${image}
USER root
ENV MODE=prod
WORKDIR /app
RUN mkdir -p src && i=0; while [ $i -lt 500 ]; do echo "int f$i(){return $i;}" > src/f$i.c; i=$((i+1)); done
RUN gcc -c -o all.o -x c src/f1.c && cat src/*.c | wc -l > count
RUN useradd worker && chown -R worker src
USER worker
RUN echo ${last} > /tmp/last
`;

type Row = { what: string; atoll: string; buildah: string };

const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;

async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; result: T }> {
  const startedAt = performance.now();
  const result = await work();
  return { ms: performance.now() - startedAt, result };
}

async function median(runs: number, work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < runs; run++) times.push((await timed(work)).ms);
  return times.sort((a, b) => a - b)[times.length >> 1] ?? 0;
}

/** The base template's files as one archive. */
async function baseArchive(builds: BuildNode, dir: string): Promise<Uint8Array> {
  const tree = join(dir, 'base.tar');
  const script = `mkdir ${dir}/mount && mount -t erofs -o ro "$1" ${dir}/mount && tar -C ${dir}/mount --numeric-owner -cf ${tree} .`;
  const packed = Bun.spawnSync(['unshare', '--mount', 'sh', '-c', script, 'pack', builds.test.node.layers.imagePath(builds.base.layers[0] ?? '')]);
  if (packed.exitCode !== 0) throw new Error(packed.stderr.toString());
  return Bun.file(tree).bytes();
}

type Builder = { build(last: string): Promise<void>; dispose(): void };

function buildah(image: string, dir: string): Builder | undefined {
  if (!Bun.which('buildah')) return undefined;
  const storage = ['--root', join(dir, 'storage'), '--runroot', join(dir, 'run'), '--storage-driver', 'overlay'];
  const run = (...args: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync(['buildah', ...storage, ...args], { stdout: 'ignore', stderr: 'pipe' });
    if (exitCode !== 0) throw new Error(stderr.toString());
  };
  return {
    async build(last) {
      await Bun.write(join(dir, 'Containerfile'), dockerfile(image, last));
      run('bud', '--isolation', 'chroot', '--tls-verify=false', '--layers', '-f', join(dir, 'Containerfile'), '-t', 'bench', dir);
    },
    dispose() {
      run('rmi', '--all', '--force');
      // It leaves its storage mounted on itself.
      Bun.spawnSync(['umount', join(dir, 'storage/overlay')]);
    },
  };
}

async function main(): Promise<void> {
  await using builds = await startBuildNode();
  await using registry = await startRegistry();
  using dir = scratch();
  const image = makeImage([{ tar: await baseArchive(builds, dir.path), compression: 'gzip' }]);
  await pushImage(image, registry.host, 'bench/base', '1');
  writeLayout(image, join(dir.path, 'layout'));
  builds.settings({ registries: { [registry.host]: { http: true } } });
  const reference = `${registry.host}/bench/base:1`;
  const ours: Builder = {
    async build(last) {
      await builds.built({ startsAsUser: false, source: { kind: 'dockerfile', stages: parseDockerfile(dockerfile(reference, last)), templates: {} } });
    },
    dispose() {},
  };
  const other = buildah(reference, dir.path);
  const rows: Row[] = [];
  const both = async (what: string, measure: (builder: Builder) => Promise<number>) => {
    rows.push({ what, atoll: seconds(await measure(ours)), buildah: other ? seconds(await measure(other)) : '–' });
  };
  await both('cold: image from a registry, all steps', async builder => (await timed(() => builder.build('1'))).ms);
  await both('nothing changed', builder => median(5, () => builder.build('1')));
  let change = 1;
  await both('the last step changed', builder => median(5, () => builder.build(String(++change))));
  other?.dispose();

  const big = await builds.built({ steps: [step('RUN', 'head -c 1000M /dev/urandom > /big', 'root')], resources: { cpuCount: 2, memoryMiB: 2048, diskMiB: 4096 } });
  const start = async (state: BuildState) => {
    const { protocol } = builds.test.node;
    const sandbox = await protocol.create(builds.test.request({ image: { templateId: 't', buildId: 'b', layers: state.layers, defaultUser: 'user', defaultWorkdir: '', buildEnv: {} } }));
    await protocol.kill(sandbox);
  };
  await start(big);
  rows.push({ what: 'create and kill, base template', atoll: seconds(await median(9, () => start(builds.base))), buildah: '–' });
  rows.push({ what: 'create and kill, template of 1 GB more', atoll: seconds(await median(9, () => start(big))), buildah: '–' });

  const bytesOf = () => builds.test.node.layers.list().reduce((sum, digest) => sum + builds.test.node.layers.bytes(digest), 0);
  const before = bytesOf();
  for (let number = 0; number < 10; number++) await builds.built({ steps: [step('RUN', 'head -c 100M /dev/urandom > /common', 'root'), step('RUN', `echo ${number} > ~/own`)] });
  rows.push({ what: 'disk of 10 templates with 100 MB in common', atoll: `${((bytesOf() - before) / 1e6).toFixed(1)} MB`, buildah: '–' });
  process.stdout.write(`| What | Atoll | buildah (chroot, not isolated) |\n|---|---|---|\n${rows.map(row => `| ${row.what} | ${row.atoll} | ${row.buildah} |`).join('\n')}\n`);
}

await main();
process.exit(0);
