import { AtollError } from '../../../base/error.ts';
import type { BuildState, BuildStep } from '../../../protocol/build.ts';
import type { BuildContext } from '../build-context.ts';
import { makeLayer } from '../make-layer.ts';
import { openView } from '../view.ts';

/** The layer with the uploaded files of a COPY step: `[source, destination, owner?, mode?]`. */
export async function copyLayer(context: BuildContext, state: BuildState, step: BuildStep): Promise<string | null> {
  const { node, files, request, limits, signal } = context;
  const [source, destination, owner = '', mode = ''] = step.args;
  if (source === undefined || destination === undefined || step.args.length > 4) throw new AtollError('invalid', 'COPY needs a source and a destination');
  if (step.filesHash === undefined) throw new AtollError('invalid', 'COPY needs the hash of its files');
  const archive = files.path(request.teamId, step.filesHash);
  if (archive === undefined) throw new AtollError('not_found', `the files of COPY ${source} were not uploaded`);
  if (mode !== '' && !/^[0-7]{1,4}$/.test(mode)) throw new AtollError('invalid', `${mode} is not a mode: give up to four octal digits`);
  await using view = await openView(node, state.layers);
  const { workdir, user } = state;
  const copy = { source, destination, workdir, user, owner, ...(mode !== '' && { mode: Number.parseInt(mode, 8) }) };
  return await makeLayer(node, { job: { kind: 'copy', copy, limits }, view: view.path, archive, signal });
}
