import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { step } from './progress.mjs';
import { run } from './run.mjs';
import { digestOf, isMadeFrom, markMadeFrom } from './stamp.mjs';

/**
 * Gets gVisor's runsc, the second way to isolate sandboxes, to dist/runsc. Where there is none to be had the platform runs
 * without it and says so; that is tried again on another day.
 */
export async function prepareRunsc(root) {
  const output = join(root, 'dist/runsc');
  const program = join(root, 'scripts/build-runsc.mjs');
  const digest = (day = '') => digestOf([program], `${process.arch} ${day}`);
  const today = new Date().toISOString().slice(0, 10);
  if (existsSync(join(output, 'runsc.json')) && [digest(), digest(today)].some(made => isMadeFrom(output, made))) return;
  await step('Getting gVisor, the second way to isolate sandboxes', async tell => {
    await run([process.execPath, program, output], { cwd: root, onLine: tell });
    const { reason } = JSON.parse(readFileSync(join(output, 'runsc.json'), 'utf8'));
    markMadeFrom(output, digest(reason ? today : ''));
  });
}
