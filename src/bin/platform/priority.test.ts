import { expect, test } from 'bun:test';
import { join } from 'node:path';

test('whatever score it was started with, the platform ends after programs of sandboxes where memory is short', () => {
  const program = `(await import(${JSON.stringify(join(import.meta.dir, 'priority.ts'))})).takePriority();
    console.log((await Bun.file('/proc/self/oom_score_adj').text()).trim());`;
  const scoreAfter = (before: number) => {
    const command = `echo ${before} > /proc/self/oom_score_adj; exec "$0" --eval "$1"`;
    return Bun.spawnSync(['sh', '-ec', command, process.execPath, program]).stdout.toString().trim();
  };
  // As in a pod without requests, in a pod with some, and in a service.
  expect([1000, 990, 0].map(scoreAfter)).toEqual(['0', '0', '0']);
});
