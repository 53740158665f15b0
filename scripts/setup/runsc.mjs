import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { step } from './progress.mjs';
import { run } from './run.mjs';
import { digestOf, isMadeFrom, markMadeFrom } from './stamp.mjs';

/**
 * Puts gVisor's runsc, for the driver gvisor, into dist/runsc. If none is available, the platform runs without it and
 * says so; a start an hour later tries again.
 */
export async function prepareRunsc(root) {
  const output = join(root, 'dist/runsc');
  const program = join(root, 'scripts/build-runsc.mjs');
  const digest = (hour = '') => digestOf([program], `${process.arch} ${hour}`);
  const thisHour = new Date().toISOString().slice(0, 'yyyy-mm-ddThh'.length);
  if (existsSync(join(output, 'runsc.json')) && [digest(), digest(thisHour)].some(made => isMadeFrom(output, made)))
    return;
  await step('Getting gVisor, the second way to isolate sandboxes', async tell => {
    await run([process.execPath, program, output], { cwd: root, onLine: tell });
    const { reason } = JSON.parse(readFileSync(join(output, 'runsc.json'), 'utf8'));
    markMadeFrom(output, digest(reason ? thisHour : ''));
    return { missing: reason };
  });
}
