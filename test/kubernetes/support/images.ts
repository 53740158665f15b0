import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runToEnd } from '../../support/process.ts';

/** The name of the image for pods' first containers, which hold their namespaces. */
export const pauseImage = 'localhost/pause:1';

const program = `#include <signal.h>
#include <unistd.h>
static void end(int n) { (void)n; _exit(0); }
int main(void) { signal(SIGTERM, end); signal(SIGINT, end); for (;;) pause(); }
`;

/** Writes an archive with that image, as \`docker save\` lays it out. Answers its path. */
export async function writePauseImage(folder: string): Promise<string> {
  const place = join(folder, 'pause');
  mkdirSync(place);
  writeFileSync(join(place, 'pause.c'), program);
  const run = async (...argv: string[]) => {
    const { exitCode, stderr } = await runToEnd(argv, { cwd: place });
    if (exitCode !== 0) throw new Error(`${argv.join(' ')}: ${stderr}`);
  };
  await run('gcc', '-static', '-O2', '-o', 'pause', 'pause.c');
  await run('tar', '-cf', 'layer.tar', 'pause');
  const digest = createHash('sha256')
    .update(readFileSync(join(place, 'layer.tar')))
    .digest('hex');
  writeFileSync(
    join(place, 'config.json'),
    JSON.stringify({
      architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
      os: 'linux',
      config: { Entrypoint: ['/pause'] },
      rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
    }),
  );
  const manifest = [{ Config: 'config.json', RepoTags: [pauseImage], Layers: ['layer.tar'] }];
  writeFileSync(join(place, 'manifest.json'), JSON.stringify(manifest));
  await run('tar', '-cf', join(folder, 'pause.tar'), 'manifest.json', 'config.json', 'layer.tar');
  return join(folder, 'pause.tar');
}
