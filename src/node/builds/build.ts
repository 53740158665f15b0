import type { KeyedMutex } from '../../base/concurrency/keyed-mutex.ts';
import type { BuildLogLevel, BuildState, StartBuild } from '../../protocol/build.ts';
import type { ImageLimits } from '../../protocol/builder.ts';
import type { EgressPolicy } from '../../protocol/network/network.ts';
import type { Log } from '../../base/telemetry/log.ts';
import type { Builder } from '../builder/builder.ts';
import type { Disks } from '../disks/disks.ts';
import type { LayerMaker } from '../layers/make.ts';
import type { Layers } from '../layers/store.ts';
import { stacked } from '../layers/stacked.ts';
import type { Viewer } from '../layers/view.ts';
import type { Layout } from '../layout.ts';
import type { Helper } from '../native/helper.ts';
import type { BuildSandbox, BuildSandboxOptions } from './sandbox/build-sandbox.ts';
import type { StartedSandboxes } from './start/start-memory.ts';
import type { BuildBytes } from './build-bytes.ts';
import type { StepCache } from './cache/step-cache.ts';
import type { StepQuestions } from './cache/step-questions.ts';
import { lineOf, type Label } from './label.ts';

/** Where a build finds the archives that its COPY steps name. */
export type UploadedFiles = {
  /** The path of the team's archive with this hash; undefined when it was not uploaded. */
  path(teamId: string, hash: string): string | undefined;
};

/** One build under way, and what its steps need. A function takes only the parts that it uses. */
export type Build = LayerMaker &
  Viewer &
  SandboxWork & {
    request: StartBuild;
    /** Sandboxes in which the start command runs, for templates to begin with. */
    started: StartedSandboxes;
    builder: Pick<Builder, 'run'>;
    layers: Pick<Layers, 'has' | 'bytes' | 'make' | 'mount'>;
    /** The node's own log, for failures of the platform. */
    nodeLog: Log;
    helper: Helper;
    layout: Pick<Layout, 'installation' | 'data' | 'mounts'>;
    disks: Pick<Disks, 'open' | 'create' | 'close' | 'used'>;
    cache: StepCache;
    /** What other machines have already carried out, if there are other machines. */
    questions: StepQuestions | undefined;
    files: UploadedFiles;
    /** Limits of the next layer. */
    readonly limits: ImageLimits;
    bytes: BuildBytes;
    /** Aborted when the build is cancelled or its time is over. */
    signal: AbortSignal;
    deadlineMs: number;
    /** Set once a step has to run in spite of the cache: the steps after it run too. */
    forced: boolean;
    /** Locks the directories of `RUN --mount=type=cache` that are in use. */
    cacheLocks: KeyedMutex<string>;
    log(message: string, options?: { level?: BuildLogLevel }): void;
  };

/** The parts of the node that builds use. */
export type NodeForBuilds = Pick<
  Build,
  'builder' | 'disks' | 'helper' | 'layers' | 'layout' | 'nodeLog' | 'openSandbox' | 'space' | 'started'
>;

/** How sandboxes of a build are opened, and what they are given. */
type SandboxWork = {
  openSandbox(options: BuildSandboxOptions): Promise<BuildSandbox>;
  /** PEM of authorities that build sandboxes trust beside their image's own. */
  authorities: string | undefined;
  /** What the commands of steps can reach: the operator decides, whatever the template's sandboxes may reach. */
  network: EgressPolicy;
};

/** Dependencies of a cached step. */
export type CachedWork = Pick<Build, 'cache' | 'forced' | 'bytes' | 'log'> &
  Partial<Pick<Build, 'questions'>> & { layers: Pick<Layers, 'bytes'>; signal: AbortSignal };
/** Dependencies of making a layer above others. */
export type LayerWork = LayerMaker & Viewer & Pick<Build, 'limits' | 'signal' | 'layers' | 'layout'>;
/** Dependencies of running a command for a layer. */
export type CommandWork = LayerWork &
  SandboxWork &
  Pick<Build, 'request' | 'deadlineMs' | 'cacheLocks' | 'disks' | 'helper' | 'layout' | 'log' | 'nodeLog'>;

/** Raised when steps change their meaning: everything cached before is made again. */
const cacheVersion = 2;

/**
 * A step's layer on top of `state`, from the cache or newly made. The key contains everything that the outcome depends
 * on: the state, the kind of step and `facts`. A layer that does not `last` serves this build alone.
 */
export async function cachedLayer(
  { cache, forced, bytes, log, layers, questions, signal }: CachedWork,
  state: BuildState,
  step: { kind: string; facts: unknown; label: Label; lasts?(after: BuildState): Promise<boolean> },
  make: () => Promise<string | null>,
): Promise<BuildState> {
  const startedAt = performance.now();
  const seconds = () => `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
  let made = false;
  const { lasts } = step;
  const after = (layer: string | null): BuildState =>
    layer === null ? state : { ...state, layers: stacked([...state.layers, layer]) };
  const layer = await cache
    .get([cacheVersion, step.kind, state, step.facts], {
      force: forced,
      signal,
      onHit: () => log(`CACHED ${lineOf(step.label)}`),
      ...(lasts && { lasts: layer => lasts(after(layer)) }),
      ...(questions && { ask: key => questions.ask(key, signal), onMade: questions.made }),
      async make() {
        made = true;
        log(lineOf(step.label));
        bytes.require();
        const layer = await make();
        if (layer !== null) bytes.add(layers.bytes(layer));
        return layer;
      },
    })
    .catch(error => {
      if (made) log(lineOf(step.label, `failed after ${seconds()}`), { level: 'warn' });
      throw error;
    });
  if (made) log(lineOf(step.label, `done in ${seconds()}`));
  return after(layer);
}
