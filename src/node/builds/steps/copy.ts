import { AtollError } from '../../../base/error.ts';
import type { BuildState, BuildStep } from '../../../protocol/build.ts';
import type { Build, LayerWork } from '../build.ts';
import { makeLayer } from '../../layers/make.ts';
import { openView } from '../../layers/view.ts';

/** Makes the layer with the uploaded files of a COPY step: `[source, destination, owner?, mode?]`. */
export async function copyLayer(
  build: LayerWork & Pick<Build, 'files' | 'request'>,
  state: BuildState,
  step: BuildStep,
): Promise<string | null> {
  const { files, request, limits, signal } = build;
  const [source, destination, owner = '', mode = ''] = step.args;
  if (source === undefined || destination === undefined || step.args.length > 4)
    throw new AtollError('invalid', 'COPY needs a source and a destination');
  if (step.filesHash === undefined) throw new AtollError('invalid', 'COPY needs the hash of its files');
  const archive = files.path(request.teamId, step.filesHash);
  if (archive === undefined) throw new AtollError('not_found', `the files of COPY ${source} were not uploaded`);
  if (mode !== '' && !/^[0-7]{1,4}$/.test(mode))
    throw new AtollError('invalid', `${mode} is not a mode: give up to four octal digits`);
  await using view = await openView(build, state.layers);
  const { workdir, user } = state;
  const copy = { source, destination, workdir, user, owner, ...(mode !== '' && { mode: Number.parseInt(mode, 8) }) };
  return await makeLayer(build, { job: { kind: 'copy', copy, limits }, view: view.path, archive, signal });
}
