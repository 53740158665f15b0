import { existsSync, readFileSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { step } from './progress.mjs';
import { run } from './run.mjs';
import { digestOf, isMadeFrom, markMadeFrom } from './stamp.mjs';

/**
 * Puts the CRIU that saves the memory of paused sandboxes into dist/criu. If none is available, the platform runs
 * without it and says so; an hour later it tries again.
 */
export async function prepareCriu(root) {
  const output = join(root, 'dist/criu');
  const program = join(root, 'scripts/build-criu.mjs');
  const digest = (hour = '') => digestOf([program], `${process.arch} ${release()} ${hour}`);
  const thisHour = new Date().toISOString().slice(0, 'yyyy-mm-ddThh'.length);
  if (existsSync(join(output, 'criu.json')) && [digest(), digest(thisHour)].some(made => isMadeFrom(output, made)))
    return;
  await step('Getting CRIU, which keeps the memory of paused sandboxes', async tell => {
    await run([process.execPath, program, output], { cwd: root, onLine: tell });
    const { reason } = JSON.parse(readFileSync(join(output, 'criu.json'), 'utf8'));
    markMadeFrom(output, digest(reason ? thisHour : ''));
    return { missing: reason };
  });
}
