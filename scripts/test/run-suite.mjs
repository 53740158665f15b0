import { spawn } from 'node:child_process';

/** How long a suite may take to end after it was told to, ms. */
export const graceMs = 10_000;
/** Bytes of a suite's output that are kept; a longer output loses its middle. */
const outputBytesMax = 16 * 1024 * 1024;

/**
 * Runs a suite in its own process group, to its end or to its time limit, and answers its exit code and its output.
 * While it runs, `children` holds the group's first process, so that it can be ended early.
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
    // Leftovers of a test would disturb the next suite, and keep the output open.
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
