import { AtollError, messageOf } from '../../base/error.ts';
import type { BuildResult, BuildState } from '../../protocol/build.ts';
import type { BuildContext } from './build-context.ts';
import { noteOrigin, tryStartCommand } from './finalize.ts';
import { flattenWhereDeep } from './flatten.ts';
import { runStep } from './run-step.ts';

/** What comes before the steps: the state that the build's source stands for. */
export type ResolveSource = (context: BuildContext) => Promise<{ state: BuildState; startCommand?: string }>;

/**
 * Runs a build from its source to its end. `atStep` is told where it is: `base`, the number of a step, `finalize`.
 * Failures of the build are its result; only what breaks the platform is thrown.
 */
export async function runBuild(context: BuildContext, resolveSource: ResolveSource, atStep: (step: string) => void): Promise<BuildResult> {
  const { request, node } = context;
  let step = 'base';
  const startedAt = performance.now();
  const enter = (next: string) => atStep((step = next));
  try {
    enter('base');
    node.space.require('a build');
    const source = await resolveSource(context);
    let { state } = source;
    if (request.startsAsUser) state = await runStep(context, state, { type: 'USER', args: ['user', 'true'], force: false }, 'base');
    for (const [index, next] of request.steps.entries()) {
      context.signal.throwIfAborted();
      enter(String(index + 1));
      node.space.require('another step');
      state = await flattenWhereDeep(context, await runStep(context, state, next, `${index + 1}/${request.steps.length}`));
    }
    enter('finalize');
    const startCommand = request.startCommand ?? source.startCommand;
    const { readyCommand } = request;
    const started = await tryStartCommand(context, state, { startCommand, readyCommand });
    state = await noteOrigin(context, state);
    const startedLayers = started && (await noteOrigin(context, { ...state, layers: started.layers })).layers;
    const bytes = state.layers.reduce((sum, digest) => sum + node.layers.bytes(digest), 0);
    context.log(`[finalize] ready in ${((performance.now() - startedAt) / 1000).toFixed(1)} s: ${state.layers.length} layers, ${(bytes / 1e6).toFixed(1)} MB`);
    return {
      status: 'ready',
      state,
      ...(startCommand !== undefined && { startCommand }),
      ...(readyCommand !== undefined && { readyCommand }),
      ...(started && startedLayers && { started: { ...started, layers: startedLayers } }),
      layersMiB: Math.ceil(bytes / 1024 / 1024),
    };
  } catch (error) {
    return { status: 'error', message: reasonOf(context, error), step };
  }
}

function reasonOf(context: BuildContext, error: unknown): string {
  const { signal } = context;
  if (signal.aborted) return messageOf(signal.reason);
  if (error instanceof AtollError && error.code !== 'internal') return error.message;
  context.node.log.error('a build failed for a reason of the platform', { buildId: context.request.buildId, error: messageOf(error), stack: error instanceof Error ? error.stack : undefined });
  return `the platform could not carry out this step: ${messageOf(error)}`;
}
