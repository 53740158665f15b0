import { KeyedMutex } from '../../base/concurrency/keyed-mutex.ts';
import { AtollError } from '../../base/error.ts';
import type { NodeBuildProtocol, StartBuild } from '../../protocol/build.ts';
import type { ImageLimits } from '../../protocol/builder.ts';
import type { EgressPolicy } from '../../protocol/network/network.ts';
import { builderFor } from '../builder/builder.ts';
import type { Build, NodeForBuilds, UploadedFiles } from './build.ts';
import { createBuildBytes, type ByteBounds } from './build-bytes.ts';
import { createBuildLog, type BuildLog } from './build-log.ts';
import { collectCached, type CachedFile, type CollectParts } from './cache/collect.ts';
import { reasonOf, runBuild, type BuildParts } from './run-build.ts';
import type { StepCache } from './cache/step-cache.ts';
import { createStepQuestions, type StepQuestions } from './cache/step-questions.ts';

/** What a node needs to run builds. */
type BuildsOptions = {
  node: NodeForBuilds & CollectParts;
  cache: StepCache;
  files: UploadedFiles;
  parts: BuildParts;
  /** PEM. */
  authorities: string | undefined;
  /** What the commands of steps can reach. */
  network: EgressPolicy;
  /** What builds keep in files at this moment. */
  cachedFiles(): CachedFile[];
  /** Most bytes of the disk that everything cached may take. */
  cacheBytesMax: number;
  /** Most bytes that all layers may take before those that can be had again from elsewhere are deleted. */
  layerBytesMax: number;
  buildTimeoutMs: number;
  concurrentMax: number;
  /** Limits of each layer. */
  limits: ImageLimits;
  /** Limits of what builds write. */
  byteBounds: ByteBounds;
};

/** A build that was started, until its caller forgets it. */
type StartedBuild = {
  request: StartBuild;
  startedAtMs: number;
  log: BuildLog;
  /** Present in a build that shares its steps. */
  questions: StepQuestions | undefined;
  abort: AbortController;
  done: Promise<void>;
};

/**
 * Places beyond the usual limit, one each for teams that have no build running: one team may fill all others for
 * hours.
 */
const spareBuilds = 4;

/**
 * The builds of this node. Nobody hears any more of builds that `stop` or a crash cuts off: the caller takes them for
 * failed.
 */
export function createBuilds(options: BuildsOptions): NodeBuildProtocol & { stop(): Promise<void> } {
  const { node } = options;
  const builds = new Map<string, StartedBuild>();
  const written = createBuildBytes(options.byteBounds, () => Date.now());
  const cacheLocks = new KeyedMutex<string>();
  const known = (buildId: string): StartedBuild => {
    const build = builds.get(buildId);
    if (!build) throw new AtollError('not_found', `this node knows no build ${buildId}`);
    return build;
  };
  const running = () => [...builds.values()].filter(build => !build.log.result());

  return {
    readDockerfile: text => node.builder.run({ job: { kind: 'dockerfile', text } }),
    async start(request) {
      if (builds.has(request.buildId)) return;
      const now = running();
      const hasOne = now.some(build => build.request.teamId === request.teamId);
      if (now.length >= options.concurrentMax + (hasOne ? 0 : spareBuilds))
        throw new AtollError(
          'unavailable',
          `this node runs ${options.concurrentMax} builds, its maximum; try again later`,
        );
      builds.set(request.buildId, begin(request, options, { written, cacheLocks }));
    },
    async progress(buildId, after, waitMs) {
      const { log, questions } = known(buildId);
      const page = await log.read(after, questions?.first() === undefined ? waitMs : 0);
      const question = questions?.first();
      return {
        ...page,
        ...(question !== undefined && { question }),
        ...(page.result && questions && { made: questions.allMade() }),
      };
    },
    answer: async (buildId, key, outcome) => known(buildId).questions?.answer(key, outcome),
    async cancel(buildId, reason) {
      const build = builds.get(buildId);
      build?.abort.abort(new AtollError('canceled', reason));
      await build?.done;
    },
    async forget(buildId) {
      if (builds.get(buildId)?.log.result()) builds.delete(buildId);
    },
    async collect(keep, replaceable = []) {
      const now = running();
      return collectCached(node, options.cache, {
        keep,
        needed: now.flatMap(({ request }) => layersOf(request)),
        replaceable,
        layerBytesMax: options.layerBytesMax,
        bytesMax: options.cacheBytesMax,
        buildingSinceMs: now.length > 0 ? Math.min(...now.map(build => build.startedAtMs)) : undefined,
        files: options.cachedFiles(),
      });
    },
    async layerBytes(digests) {
      const here = digests.filter(digest => node.layers.has(digest));
      return Object.fromEntries(here.map(digest => [digest, node.layers.bytes(digest)]));
    },
    async stop() {
      for (const { abort } of builds.values()) abort.abort(new AtollError('canceled', 'the platform was stopped'));
      await Promise.all([...builds.values()].map(build => build.done));
    },
  };
}

/** Starts a build in the background. `written` counts what the builds of each team write. */
function begin(
  request: StartBuild,
  options: BuildsOptions,
  { written, cacheLocks }: { written: ReturnType<typeof createBuildBytes>; cacheLocks: KeyedMutex<string> },
): StartedBuild {
  const log = createBuildLog(() => Date.now());
  const questions = request.sharesSteps ? createStepQuestions(log.wake) : undefined;
  const abort = new AbortController();
  const late = AbortSignal.timeout(options.buildTimeoutMs);
  late.addEventListener('abort', () =>
    abort.abort(
      new AtollError('deadline_exceeded', `the build took longer than ${options.buildTimeoutMs / 60_000} minutes`),
    ),
  );
  let step = 'base';
  const bytes = written.begin(request.teamId);
  const build: Build = {
    ...options.node,
    builder: builderFor(options.node.builder, request.teamId),
    request,
    cache: options.cache,
    questions,
    files: options.files,
    bytes,
    get limits() {
      return { ...options.limits, bytesMax: Math.min(options.limits.bytesMax, bytes.left()) };
    },
    signal: abort.signal,
    deadlineMs: Date.now() + options.buildTimeoutMs,
    forced: request.force,
    cacheLocks,
    authorities: options.authorities,
    network: options.network,
    log: (message, more = {}) => log.write(message, { ...more, step }),
  };
  const done = runBuild(build, options.parts, next => (step = next)).then(
    result => {
      if (result.status === 'error') log.write(result.message, { level: 'error', step });
      log.end(result);
    },
    error => log.end({ status: 'error', message: reasonOf(build, error), step }),
  );
  return { request, startedAtMs: Date.now(), log, questions, abort, done };
}

/** The layers that a build may stand on. */
function layersOf({ source }: StartBuild): string[] {
  if (source.kind === 'state') return source.state.layers;
  return source.kind === 'dockerfile' ? Object.values(source.templates).flatMap(state => state.layers) : [];
}
