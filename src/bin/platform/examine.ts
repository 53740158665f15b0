import { commandOfAtoll } from '../../base/process/own-program.ts';
import { SingleFlight } from '../../base/concurrency/single-flight.ts';
import { AtollError } from '../../base/error.ts';
import type { HostFinding } from '../../protocol/doctor.ts';

/** Longest examination, milliseconds. A store that does not answer takes longest. */
const examineMsMax = 120_000;

/**
 * Examines this machine as `atoll doctor` does, in a separate process: the examination tries things out, and whatever
 * watches the platform must not stand still meanwhile. Callers during an examination share its findings. Errors:
 * `unavailable`.
 */
export function examineApart(environment: Record<string, string>): () => Promise<HostFinding[]> {
  const flight = new SingleFlight<'examination', HostFinding[]>();
  return () => flight.run('examination', () => examine(environment));
}

async function examine(environment: Record<string, string>): Promise<HostFinding[]> {
  const child = Bun.spawn(commandOfAtoll('doctor', '--json'), {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: environment,
    cwd: '/',
    timeout: examineMsMax,
    killSignal: 'SIGKILL',
  });
  const text = await new Response(child.stdout).text();
  await child.exited;
  try {
    return JSON.parse(text) as HostFinding[];
  } catch {
    throw new AtollError('unavailable', 'The examination did not end; `atoll doctor` on the machine says more.');
  }
}
