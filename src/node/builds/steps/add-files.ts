import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256Hex } from '../../../base/crypto/secret.ts';
import type { BuildState } from '../../../protocol/build.ts';
import { writeTar, type NewTarEntry } from '../../../base/write-tar.ts';
import { cachedLayer, type CachedWork, type LayerWork } from '../build.ts';
import type { Label } from '../label.ts';
import { makeLayer } from '../../layers/make.ts';
import { scratchDirOf } from '../scratch.ts';
import { openView } from '../../layers/view.ts';

/** Puts files into the root of a state, as a layer of their own. Follows links of the image to directories. */
export async function addFiles(
  build: CachedWork & LayerWork,
  state: BuildState,
  { label, files }: { label: Label; files: NewTarEntry[] },
): Promise<BuildState> {
  const archive = writeTar(files);
  const { limits, signal } = build;
  return cachedLayer(build, state, { kind: 'files', facts: sha256Hex(archive), label }, async () => {
    const scratch = await mkdtemp(join(scratchDirOf(build.layout), 'files-'));
    try {
      const path = join(scratch, 'files.tar');
      writeFileSync(path, archive);
      await using view = await openView(build, state.layers);
      const job = { kind: 'copy', copy: { source: '', destination: '/', workdir: '/', user: 'root' }, limits } as const;
      return await makeLayer(build, { job, view: view.path, archive: path, signal });
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  });
}
