import type { BuildState } from '../../../protocol/build.ts';
import type { Looked } from '../../../protocol/builder.ts';
import type { Build } from '../build.ts';
import { openView, type Viewer } from '../../layers/view.ts';

/** Looks into a state's layers: whether they have certain files, and who a user is. */
export async function lookInto(
  build: Viewer & Pick<Build, 'builder' | 'signal'>,
  state: BuildState,
  { files = [], user = 'root' }: { files?: string[]; user?: string },
): Promise<Looked> {
  await using view = await openView(build, state.layers);
  return await build.builder.run({
    job: { kind: 'look', files, user },
    shows: { view: view.path },
    signal: build.signal,
  });
}
