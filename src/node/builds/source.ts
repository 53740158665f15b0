import { AtollError } from '../../base/error.ts';
import type { ResolveSource } from './run-build.ts';

/** Where the state comes from that a build's first step works on. */
export function createSource(): ResolveSource {
  return async ({ request, node, log }) => {
    const { source } = request;
    if (source.kind === 'state') {
      const missing = source.state.layers.find(digest => !node.layers.has(digest));
      if (missing !== undefined) throw new AtollError('not_found', 'a layer of the template that this one is built from is missing on this node; build that template again');
      log('[base] from a template');
      return source.state;
    }
    throw new AtollError('unimplemented', 'images');
  };
}
