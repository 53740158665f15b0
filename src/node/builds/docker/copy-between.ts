import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import { joinPath } from '../../../base/join-path.ts';
import { writeTar } from '../../../base/write-tar.ts';
import type { BuildState, DockerInstruction } from '../../../protocol/build.ts';
import type { CopyOptions } from '../../../protocol/builder.ts';
import { cachedLayer, type CachedWork, type LayerWork } from '../build.ts';
import { makeLayer } from '../../layers/make.ts';
import { scratchDirOf } from '../scratch.ts';
import { openView } from '../../layers/view.ts';
import type { Label } from '../label.ts';
import { expandText } from '../../../base/dockerfile/expand.ts';

type Copy = DockerInstruction & { kind: 'copy' };
type Write = DockerInstruction & { kind: 'write' };

/**
 * Copies files of another stage or image into `state` and answers its layers. Files keep their owners unless told
 * otherwise.
 */
export async function copyBetween(
  build: CachedWork & LayerWork,
  state: BuildState,
  copy: Copy,
  from: BuildState,
  label: Label,
): Promise<BuildState> {
  const { limits, signal } = build;
  const { sources, destination, chown, chmod } = copy;
  const facts = { sources, destination, chown, chmod, layers: from.layers };
  return cachedLayer(build, state, { kind: 'docker-copy', facts, label }, async () => {
    await using view = await openView(build, state.layers);
    await using source = await openView(build, from.layers);
    const job = { kind: 'copy-between', sources, copy: targetOf(state, copy), limits } as const;
    return await makeLayer(build, { job, view: view.path, from: source.path, signal });
  });
}

/** Writes here-documents as files and answers the layers. */
export async function writeInline(
  build: CachedWork & LayerWork,
  state: BuildState,
  write: Write,
  lookUp: (name: string) => string | undefined,
  label: Label,
): Promise<BuildState> {
  const { limits, signal } = build;
  const files = write.files.map(({ name, content, expand }) => ({
    name,
    content: expand ? expandText(content, lookUp) : content,
  }));
  if (files.length > 1 && !joinPath('/', write.destination).endsWith('/'))
    throw new AtollError(
      'invalid',
      `line ${write.line}: where several files are written, the destination must end in /`,
    );
  let after = state;
  for (const file of files) {
    const facts = { ...file, destination: write.destination, chown: write.chown, chmod: write.chmod };
    const before = after;
    after = await cachedLayer(build, before, { kind: 'docker-write', facts, label }, async () => {
      const scratch = await mkdtemp(join(scratchDirOf(build.layout), 'files-'));
      try {
        const archive = join(scratch, 'file.tar');
        writeFileSync(
          archive,
          writeTar([
            {
              path: file.name,
              type: 'file',
              attributes: { mode: 0o644, uid: 0, gid: 0 },
              content: Buffer.from(file.content),
            },
          ]),
        );
        await using view = await openView(build, before.layers);
        const job = { kind: 'copy', copy: { ...targetOf(before, write), source: file.name }, limits } as const;
        return await makeLayer(build, { job, view: view.path, archive, signal });
      } finally {
        await rm(scratch, { recursive: true, force: true });
      }
    });
  }
  return after;
}

function targetOf(
  state: BuildState,
  { destination, chown, chmod, line }: Pick<Copy, 'destination' | 'chown' | 'chmod' | 'line'>,
): CopyOptions {
  if (chmod !== '' && !/^[0-7]{1,4}$/.test(chmod))
    throw new AtollError('invalid', `line ${line}: --chmod=${chmod} is not an octal mode`);
  return {
    source: '',
    destination,
    workdir: state.workdir || '/',
    user: 'root',
    ...(chown !== '' && { owner: chown }),
    ...(chmod !== '' && { mode: Number.parseInt(chmod, 8) }),
  };
}
