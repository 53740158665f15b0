import { spawn } from 'node:child_process';

/** Time for a suite to end by itself once it was told to, ms. */
export const graceMs = 10_000;
/** Bytes of a suite's output that are kept; a longer one loses its middle. */
const outputBytesMax = 16 * 1024 * 1024;

/**
 * Runs a suite in a process group of its own, to its end or to its time limit, and answers its exit code and what it
 * printed. `children` holds the group's first process while it runs, for whoever has to end it early.
 */
export function runSuite({ name, argv, timeoutMs }, { root, report, children }) {
  return new Promise(resolve => {
    const [program, ...args] = argv(report);
    const output = [];
    let bytes = 0;
    const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    const keep = chunk => {
      if ((bytes += chunk.length) <= outputBytesMax) output.push(chunk);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    children.add(child);
    const timer = setTimeout(() => {
      output.push(Buffer.from(`\n${name} did not end within ${timeoutMs / 60_000} min and is stopped.\n`));
      killGroup(child.pid, 'SIGTERM');
      setTimeout(() => killGroup(child.pid, 'SIGKILL'), graceMs).unref();
    }, timeoutMs);
    const end = code => {
      clearTimeout(timer);
      children.delete(child);
      if (bytes > outputBytesMax)
        output.push(Buffer.from(`\n${bytes - outputBytesMax} more bytes of output are left out.\n`));
      resolve({ exitCode: code, output: Buffer.concat(output) });
    };
    child.on('error', error => {
      output.push(Buffer.from(`${program} could not be started: ${error.message}\n`));
      end(1);
    });
    // Leftovers of a test would disturb the next suite, and hold the output open.
    child.on('exit', () => killGroup(child.pid, 'SIGKILL'));
    child.on('close', code => end(code ?? 1));
  });
}

export function killGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone.
  }
}
