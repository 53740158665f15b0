import { rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256Hex } from '../../base/secret.ts';
import type { BuildState } from '../../protocol/build.ts';
import { writeTar, type NewTarEntry } from '../../base/write-tar.ts';
import { cachedLayer, type BuildContext } from './build-context.ts';
import { makeLayer } from './make-layer.ts';
import { scratchDirOf } from './scratch.ts';
import { openView } from './view.ts';

/** Puts files into the root of a state as a layer of their own. Links of the image to directories are followed. */
export async function addFiles(context: BuildContext, state: BuildState, addition: { label?: string; files: NewTarEntry[] }): Promise<BuildState> {
  const archive = writeTar(addition.files);
  const label = addition.label ?? `[base] adding ${addition.files.length} files`;
  const { node, limits, signal } = context;
  return cachedLayer(context, state, { kind: 'files', facts: sha256Hex(archive), label }, async () => {
    const scratch = await mkdtemp(join(scratchDirOf(node), 'files-'));
    try {
      const path = join(scratch, 'files.tar');
      writeFileSync(path, archive);
      await using view = await openView(node, state.layers);
      const job = { kind: 'copy', copy: { source: '', destination: '/', workdir: '/', user: 'root' }, limits } as const;
      return await makeLayer(node, { job, view: view.path, archive: path, signal });
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  });
}
