import { AtollError } from '../../base/error.ts';

/** The first use of something makes the kernel load its modules, which takes a slow machine a while. */
const timeoutMs = 60_000;

/** `detail` of the error for a program that is not there. */
export const notInstalled = 'not_installed';

/** Runs a short command to its end and answers what it printed. Fails with what it said, or when it is not installed. */
export async function tryCommand(argv: [string, ...string[]], input = ''): Promise<string> {
  const program = pathOf(argv[0]);
  const child = Bun.spawn([program, ...argv.slice(1)], { stdin: Buffer.from(input), stdout: 'pipe', stderr: 'pipe', timeout: timeoutMs, killSignal: 'SIGKILL' });
  const [output, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  if (child.signalCode === 'SIGKILL') throw new AtollError('deadline_exceeded', `${argv[0]} did not end within ${timeoutMs / 1000} s`);
  if (child.exitCode !== 0) {
    throw new AtollError('internal', (errors || output).trim().split('\n')[0] || `${argv[0]} ended with ${child.exitCode ?? child.signalCode}`);
  }
  return output.trim();
}

/** Runs a command as `tryCommand` does, in a network namespace that is gone afterwards. */
export async function tryInNetworkNamespace(argv: [string, ...string[]], input = ''): Promise<string> {
  pathOf(argv[0]); // else unshare would say in its own words that it is not there
  return tryCommand(['unshare', '--net', ...argv], input);
}

function pathOf(name: string): string {
  const program = Bun.which(name);
  if (!program) throw new AtollError('unavailable', `${name} is not installed`, { detail: notInstalled });
  return program;
}
