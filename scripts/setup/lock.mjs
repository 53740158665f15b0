import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { Problem } from './problem.mjs';

const pollMs = 200;
/** Exit code of `flock --nonblock` if somebody else has the lock. */
const takenExitCode = 1;

/** Does `work` while no other process of this checkout does: two set-ups at once would damage each other's files. */
export async function exclusively(file, work) {
  mkdirSync(dirname(file), { recursive: true });
  let release = await take(file);
  if (!release) process.stderr.write('Waiting for another set-up of this checkout …\n');
  while (!release) {
    await new Promise(resolve => setTimeout(resolve, pollMs));
    release = await take(file);
  }
  try {
    return await work();
  } finally {
    await release();
  }
}

/**
 * Makes flock(1) hold the lock as long as our end of its input is open, which this process can't leave behind: the
 * file's content, and who wrote it before a crash, don't matter. Answers a function that releases the lock; undefined:
 * somebody else has it.
 */
function take(file) {
  // In a process group of its own: a terminal's Ctrl-C is for the work, and the lock goes once that has ended.
  const holder = spawn('flock', ['-n', file, 'sh', '-c', 'echo; exec cat'], {
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const said = [];
  holder.stderr.on('data', bytes => said.push(bytes));
  return new Promise((resolve, reject) => {
    holder.once('error', error => reject(new Problem(`flock, of util-linux, can't be run: ${error.message}`)));
    holder.once('close', code => {
      if (code === takenExitCode && said.length === 0) resolve(undefined);
      else reject(new Problem(`${file} can't be locked: ${Buffer.concat(said)}`));
    });
    holder.stdout.once('data', () =>
      resolve(async () => {
        if (holder.exitCode !== null || holder.signalCode !== null) return;
        const ended = once(holder, 'close');
        holder.stdin.end();
        await ended;
      }),
    );
  });
}
