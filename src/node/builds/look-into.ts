import type { BuildState } from '../../protocol/build.ts';
import type { Looked } from '../../protocol/builder.ts';
import type { BuildContext } from './build-context.ts';
import { openView } from './view.ts';

/** What a state's layers hold: whether there are such files, and who a user is. */
export async function lookInto({ node, signal }: Pick<BuildContext, 'node' | 'signal'>, state: BuildState, { files = [], user = 'root' }: { files?: string[]; user?: string }): Promise<Looked> {
  await using view = await openView(node, state.layers);
  return await node.builder.run<Looked>({ job: { kind: 'look', files, user }, shows: { view: view.path }, signal });
}
