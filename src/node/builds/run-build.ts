import { AtollError, messageOf } from '../../base/error.ts';
import type { BuildResult, BuildState } from '../../protocol/build.ts';
import type { Build } from './build.ts';
import { missingDevContainerStep, plansDevContainer, type BecomeDevContainer } from './docker/dev-container.ts';
import { recordOrigin, tryStartCommand } from './start/finalize.ts';
import { flattenWhereDeep } from './steps/flatten.ts';
import { runStep } from './steps/run-step.ts';

/** Finds the state that a build's source stands for, which comes before the steps. */
export type ResolveSource = (build: Build) => Promise<{ state: BuildState; startCommand?: string }>;

/** How a build begins, and what the steps of the template `devcontainer` lead to. */
export type BuildParts = { resolveSource: ResolveSource; becomeDevContainer: BecomeDevContainer };

/**
 * Runs a build from its source to its end. `atStep` hears where it is: `base`, the number of a step, `finalize`.
 * Failures of the build are its result; only failures of the platform are thrown.
 */
export async function runBuild(
  build: Build,
  { resolveSource, becomeDevContainer }: BuildParts,
  atStep: (step: string) => void,
): Promise<BuildResult> {
  const { request } = build;
  let step = 'base';
  const startedAt = performance.now();
  const enter = (next: string) => atStep((step = next));
  try {
    enter('base');
    build.space.require('a build');
    const source = await resolveSource(build);
    let { state } = source;
    if (request.startsAsUser)
      state = await runStep(build, state, { type: 'USER', args: ['user', 'true'], force: false }, 'base');
    const missing = missingDevContainerStep(request.steps, request.startCommand);
    const steps = missing ? [...request.steps, missing] : request.steps;
    for (const [index, next] of steps.entries()) {
      // Some steps never wait, so this lets other work run between any two.
      await Bun.sleep(0);
      build.signal.throwIfAborted();
      enter(String(index + 1));
      build.space.require('another step');
      state = await runStep(build, state, next, `${index + 1}/${steps.length}`);
      if (plansDevContainer(next)) state = await becomeDevContainer(build, state);
      state = await flattenWhereDeep(build, state);
    }
    enter('finalize');
    const startCommand = request.startCommand ?? source.startCommand;
    const { readyCommand } = request;
    const started = await tryStartCommand(build, state, { startCommand, readyCommand });
    state = await recordOrigin(build, state);
    const beside = started && { ...state, layers: started.layers };
    const withMemory = beside && (await recordOrigin(build, beside, ' beside the memory'));
    const bytes = state.layers.reduce((sum, digest) => sum + build.layers.bytes(digest), 0);
    build.log(
      `[finalize] ready in ${((performance.now() - startedAt) / 1000).toFixed(1)} s: ${state.layers.length} ` +
        `layers, ${(bytes / 1e6).toFixed(1)} MB`,
    );
    return {
      status: 'ready',
      state,
      ...(startCommand !== undefined && { startCommand }),
      ...(readyCommand !== undefined && { readyCommand }),
      ...(started && withMemory && { started: { ...started, layers: withMemory.layers } }),
      layersMiB: Math.ceil(bytes / 1024 / 1024),
    };
  } catch (error) {
    return { status: 'error', message: reasonOf(build, error), step };
  }
}

/** What the build's owner is told of a failure. Failures of the platform go to the node's log. */
export function reasonOf(build: Build, error: unknown): string {
  const { signal } = build;
  if (signal.aborted) return messageOf(signal.reason);
  if (error instanceof AtollError && error.code !== 'internal') return error.message;
  build.nodeLog.error('a build failed for a reason of the platform', {
    buildId: build.request.buildId,
    error: messageOf(error),
    stack: error instanceof Error ? error.stack : undefined,
  });
  return 'the platform could not carry out this step; its log has why';
}
