import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { step } from './progress.mjs';
import { run } from './run.mjs';
import { digestOf, isMadeFrom, markMadeFrom } from './stamp.mjs';

/** Sources of the agent, relative to the repository. */
const inputs = [
  'src/agent',
  'src/base',
  'src/protocol',
  'src/bin/agent.ts',
  'native/init.c',
  'native/relay.c',
  'native/remove-tree.c',
  'native/remove-tree.h',
  'scripts/build-agent.mjs',
  'scripts/setup/bundle-program.mjs',
  'tsconfig.json',
  'package-lock.json',
];

/** Builds the in-sandbox agent to dist/agent where its source changed. */
export async function buildAgent(root) {
  const output = join(root, 'dist/agent');
  const digest = digestOf(
    inputs.map(input => join(root, input)),
    process.arch,
  );
  if (isMadeFrom(output, digest) && existsSync(output)) return;
  await step('Building the agent', async tell => {
    await run([process.execPath, join(root, 'scripts/build-agent.mjs')], { cwd: root, onLine: tell });
    markMadeFrom(output, digest);
  });
}
