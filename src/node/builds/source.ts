import { AtollError } from '../../base/error.ts';
import type { BuildState } from '../../protocol/build.ts';
import type { BuildContext } from './build-context.ts';
import { runDockerfile } from './docker/run-dockerfile.ts';
import { pullImage, type PullOptions } from './image/pull.ts';
import { provision } from './provision.ts';
import type { ResolveSource } from './run-build.ts';

/** Where the state comes from that a build's first step works on. */
export function createSource(options: PullOptions): ResolveSource {
  return async context => {
    const { source } = context.request;
    switch (source.kind) {
      case 'state':
        return { state: await fromState(context, source) };
      case 'image':
        return { state: await provision(context, await pullImage(context, options, source.reference, source.credential)) };
      case 'dockerfile':
        return runDockerfile(context, options, source);
    }
  };
}

async function fromState(context: BuildContext, { state, provisions }: { state: BuildState; provisions?: boolean }): Promise<BuildState> {
  const { node, log } = context;
  if (!state.layers.every(digest => node.layers.has(digest))) {
    throw new AtollError('not_found', 'a layer of the template that this one is built from is missing on this node; build that template again');
  }
  if (provisions) return provision(context, state);
  log('[base] from a template');
  return state;
}
