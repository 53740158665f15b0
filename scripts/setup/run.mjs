import { spawn } from 'node:child_process';
import { Problem } from './problem.mjs';

/** Lines of output quoted in a failure. */
const quotedLines = 25;

/** The running children, and the signal that interrupted them. */
const work = { children: new Set(), signal: undefined };

/**
 * From now on, a signal ends this process only after its children have ended: otherwise a process that waits for the
 * lock would start beside them. A terminal's Ctrl-C reaches the children by itself.
 */
export function endAfterWork() {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => {
      work.signal = signal;
      if (signal !== 'SIGINT') for (const child of work.children) child.kill(signal);
      endIfInterrupted();
    });
}

function endIfInterrupted() {
  if (work.signal === undefined || work.children.size > 0) return;
  process.stderr.write('\nSet-up was interrupted. Run it again: it goes on with what is missing.\n');
  process.exit(130);
}

/**
 * Runs a command without input and answers its output, both streams together. `onLine` gets every line. A failure is a
 * `Problem` with the last lines.
 */
export function run(argv, { cwd, env, onLine } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(argv[0], argv.slice(1), { cwd, env: env ?? process.env, stdio: ['ignore', 'pipe', 'pipe'] });
    work.children.add(child);
    const lines = [];
    for (const stream of [child.stdout, child.stderr]) {
      let rest = '';
      stream.setEncoding('utf8').on('data', text => {
        const parts = (rest + text).split(/\r?\n|\r/);
        rest = parts.pop();
        for (const line of parts) take(line);
      });
      stream.on('end', () => rest && take(rest));
    }
    const take = line => {
      lines.push(line);
      onLine?.(line);
    };
    child.on('error', error => {
      work.children.delete(child);
      reject(new Problem(`${argv[0]} could not be started: ${error.message}`));
    });
    child.on('close', (code, signal) => {
      work.children.delete(child);
      endIfInterrupted();
      if (code === 0) resolve(lines.join('\n'));
      else
        reject(
          new Problem(
            `${argv.join(' ')} failed (${signal ?? `exit code ${code}`}):\n${lines.slice(-quotedLines).join('\n')}`,
          ),
        );
    });
  });
}
