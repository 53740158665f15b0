import { join } from 'node:path';
import { parseDockerfile } from '../../src/builder/dockerfile/parse.ts';
import type { BuildState } from '../../src/protocol/build.ts';
import { startBuildNode, step, type BuildNode } from '../../test/builds/support/build-node.ts';
import { makeImage, pushImage } from '../../test/builds/support/oci-image.ts';
import { startRegistry } from '../../test/builds/support/registry.ts';
import { scratch } from '../../test/builds/support/scratch.ts';
import { buildah, docker, type OtherBuilder } from './others.ts';

/** A typical Dockerfile without network: a system, files, a compiler, small changes at the end. */
const typical = (image: string, last: string) => `FROM ${image}
USER root
ENV MODE=prod
WORKDIR /app
RUN mkdir -p src && i=0; while [ $i -lt 500 ]; do echo "int f$i(){return $i;}" > src/f$i.c; i=$((i+1)); done
RUN gcc -c -o all.o -x c src/f1.c && cat src/*.c | wc -l > count
RUN useradd worker && chown -R worker src
USER worker
RUN echo ${last} > /tmp/last
`;
const related = (image: string, number: number) =>
  `FROM ${image}\nUSER root\nRUN head -c 100000000 /dev/urandom > /common\nRUN echo ${number} > /own\n`;
const templates = 10;

type Builder = Pick<OtherBuilder, 'name' | 'build' | 'bytes'>;

const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

async function median(runs: number, work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < runs; run++) times.push(await timed(work));
  return times.sort((a, b) => a - b)[times.length >> 1] ?? 0;
}

/**
 * Measures the builder beside buildah and docker, if installed, on the same image from the same registry. Answers a
 * Markdown table.
 */
export async function measureBuilds(): Promise<string> {
  await using builds = await startBuildNode();
  await using registry = await startRegistry();
  using dir = scratch();
  await pushImage(
    makeImage([{ tar: await baseArchive(builds, dir.path), compression: 'gzip' }]),
    registry.host,
    'bench/base',
    '1',
  );
  builds.settings({ registries: { [registry.host]: { http: true } } });
  const reference = `${registry.host}/bench/base:1`;
  const found = { buildah: buildah(join(dir.path, 'buildah')), docker: docker() };
  const others = Object.values(found).filter(other => typeof other !== 'string');
  const columns: string[][] = [];
  try {
    for (const builder of [ours(builds), ...others]) columns.push(await column(builder, reference));
  } finally {
    for (const other of others) other.dispose();
  }
  const rows = [
    'cold: image from a registry, all steps',
    'nothing changed (goal: < 1 s)',
    'the last step changed',
    `disk of ${templates} templates with 100 MB in common`,
  ];
  const starts = await startTimes(builds);
  const lines = [
    ['What', 'Atoll', ...others.map(({ name }) => name)],
    ['What', 'Atoll', ...others].map(() => '---'),
    ...rows.map((row, index) => [row, ...columns.map(each => each[index] ?? '')]),
    ...starts.map(row => [...row, ...others.map(() => '–')]),
  ];
  const missing = Object.entries(found).flatMap(([name, other]) =>
    typeof other === 'string' ? [`${name}: ${other}`] : [],
  );
  return `${lines.map(line => `| ${line.join(' | ')} |`).join('\n')}\n${missing.length > 0 ? `\nNot measured: ${missing.join('; ')}.\n` : ''}`;
}

function ours(builds: BuildNode): Builder {
  const { layers } = builds.test.node;
  return {
    name: 'Atoll',
    build: dockerfile =>
      builds
        .built({
          startsAsUser: false,
          source: { kind: 'dockerfile', stages: parseDockerfile(dockerfile), templates: {} },
        })
        .then(() => {}),
    bytes: () => layers.list().reduce((sum, digest) => sum + layers.bytes(digest), 0),
  };
}

/** The figures of one builder, in the order of the table's rows. */
async function column(builder: Builder, image: string): Promise<string[]> {
  const cold = await timed(() => builder.build(typical(image, '1')));
  const unchanged = await median(5, () => builder.build(typical(image, '1')));
  let change = 1;
  const changed = await median(5, () => builder.build(typical(image, String(++change))));
  const before = builder.bytes();
  for (let number = 0; number < templates; number++) await builder.build(related(image, number));
  return [...[cold, unchanged, changed].map(seconds), megabytes(builder.bytes() - before)];
}

/** How long a sandbox takes to start from nothing, without a pool, and to end. */
async function startTimes(builds: BuildNode): Promise<string[][]> {
  const big = await builds.built({
    steps: [step('RUN', 'head -c 1000M /dev/urandom > /big', 'root')],
    resources: { cpuCount: 2, memoryMiB: 2048, diskMiB: 4096 },
  });
  const start = async (state: BuildState) => {
    const { protocol } = builds.test.node;
    const image = {
      templateId: 't',
      buildId: 'b',
      layers: state.layers,
      defaultUser: 'user',
      defaultWorkdir: '',
      buildEnv: {},
    };
    await protocol.kill(await protocol.create(builds.test.request({ image })));
  };
  await start(big);
  return [
    ['create and kill without a pool, base template', seconds(await median(9, () => start(builds.base)))],
    ['create and kill without a pool, template of 1 GB more', seconds(await median(9, () => start(big)))],
  ];
}

/** The base template's files as one archive. */
async function baseArchive(builds: BuildNode, dir: string): Promise<Uint8Array> {
  const tree = join(dir, 'base.tar');
  const script = `mkdir ${dir}/mount && mount -t erofs -o ro "$1" ${dir}/mount && tar -C ${dir}/mount --numeric-owner -cf ${tree} .`;
  const packed = Bun.spawnSync([
    'unshare',
    '--mount',
    'sh',
    '-c',
    script,
    'pack',
    builds.test.node.layers.imagePath(builds.base.layers[0] ?? ''),
  ]);
  if (packed.exitCode !== 0) throw new Error(packed.stderr.toString());
  return Bun.file(tree).bytes();
}
