import { AtollError } from '../../base/error.ts';
import type { BuildState } from '../../protocol/build.ts';
import type { Build } from './build.ts';
import { runDockerfile } from './docker/run-dockerfile.ts';
import { pullImage, type PullOptions } from './image/pull.ts';
import { provision } from './provision.ts';
import type { ResolveSource } from './run-build.ts';

/** Makes the function that finds the state on which a build's first step works. */
export function createSource(options: PullOptions): ResolveSource {
  return async build => {
    const { source } = build.request;
    switch (source.kind) {
      case 'state':
        return { state: await fromState(build, source) };
      case 'image':
        return { state: await provision(build, await pullImage(build, options, source.reference, source.credential)) };
      case 'dockerfile':
        return runDockerfile(build, options, source);
    }
  };
}

async function fromState(
  build: Build,
  { state, provisions }: { state: BuildState; provisions?: boolean },
): Promise<BuildState> {
  const { log } = build;
  if (!state.layers.every(digest => build.layers.has(digest))) {
    throw new AtollError(
      'not_found',
      'a layer of the template that this one is built from is missing on this node; build that template again',
    );
  }
  if (provisions) return provision(build, state);
  log('[base] from a template');
  return state;
}
