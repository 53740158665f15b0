import type { BuildLogLevel, BuildState, StartBuild } from '../../protocol/build.ts';
import type { ImageLimits } from '../../protocol/builder.ts';
import type { EgressPolicy } from '../../protocol/network.ts';
import type { NodeContext } from '../context.ts';
import type { BuildBytes } from './build-bytes.ts';
import type { StepCache } from './step-cache.ts';

/** Where a build finds the archives that its COPY steps name. */
export type UploadedFiles = {
  /** The path of the team's archive with this hash; undefined when it was not uploaded. */
  path(teamId: string, hash: string): string | undefined;
};

/** What the steps of one build share. */
export type BuildContext = {
  node: NodeContext;
  request: StartBuild;
  cache: StepCache;
  files: UploadedFiles;
  /** Of the next layer. */
  readonly limits: ImageLimits;
  bytes: BuildBytes;
  /** Aborted when the build is cancelled or its time is over. */
  signal: AbortSignal;
  deadlineMs: number;
  /** Set when a step was told to run in spite of the cache: what follows runs too. */
  forced: boolean;
  /** PEM of authorities that build sandboxes trust beside their image's own. */
  authorities: string | undefined;
  /** What the commands of steps reach: the operator's choice, whatever the templates' sandboxes may. */
  network: EgressPolicy;
  /** Who uses which directory of `RUN --mount=type=cache`. */
  cacheLocks: Map<string, Promise<void>>;
  log(message: string, options?: { level?: BuildLogLevel }): void;
};

/** Bumped when steps come to mean something else: what was cached before is made again. */
const cacheVersion = 2;

/**
 * A step's layer on top of `state`, from the cache or made. Everything that the outcome depends on is in the key: the
 * state, the kind of step and `facts`.
 */
export async function cachedLayer(
  context: BuildContext,
  state: BuildState,
  step: { kind: string; facts: unknown; label: string },
  make: () => Promise<string | null>,
): Promise<BuildState> {
  const startedAt = performance.now();
  const place = /^\[[^\]]*\] /.exec(step.label)?.[0] ?? '';
  const seconds = () => `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
  let made = false;
  const layer = await context.cache
    .get([cacheVersion, step.kind, state, step.facts], {
      force: context.forced,
      onHit: () => context.log(`CACHED ${step.label}`),
      async make() {
        made = true;
        context.log(step.label);
        context.bytes.require();
        const layer = await make();
        if (layer !== null) context.bytes.add(context.node.layers.bytes(layer));
        return layer;
      },
    })
    .catch(error => {
      if (made) context.log(`${place}failed after ${seconds()}`, { level: 'warn' });
      throw error;
    });
  if (made) context.log(`${place}done in ${seconds()}`);
  return layer === null ? state : { ...state, layers: [...state.layers, layer] };
}
