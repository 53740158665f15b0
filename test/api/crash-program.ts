import { join } from 'node:path';

/**
 * Bundles `crash-child.ts` into `directory` and answers the file: it is started many times, and a bundle loads faster.
 */
export async function bundleCrashChild(directory: string): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [join(import.meta.dir, 'crash-child.ts')],
    target: 'bun',
    outdir: directory,
  });
  const [program] = outputs;
  if (!program) throw new Error('the bundle is empty');
  return program.path;
}
