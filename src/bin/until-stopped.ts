import { AtollError } from '../base/error.ts';
import type { Terminal } from '../cli/terminal/command.ts';

/** Conventional exit code for "ended by SIGINT", when it comes before the platform serves. */
export const interruptedExitCode = 130;

/**
 * Longest time for requests in flight and standby sandboxes to end, milliseconds; the next start cleans up the rest.
 */
const stopTimeoutMs = 30_000;

/** Runs in the foreground what `start` starts, until a signal stops it or it fails. Answers the exit code. */
export async function runUntilStopped(
  terminal: Terminal,
  start: (signal: AbortSignal) => Promise<AsyncDisposable & { failed: Promise<never> }>,
): Promise<number> {
  const stop = stopSignal();
  try {
    await using running = await start(stop.signal);
    await Promise.race([stop.asked, running.failed]);
    beginStopping(terminal);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    terminal.err('Interrupted.\n');
    return interruptedExitCode;
  }
  return 0;
}

/** Says that the platform stops, and ends this process where that takes too long. */
export function beginStopping(terminal: Pick<Terminal, 'err'>): void {
  setTimeout(() => {
    terminal.err(`The platform did not stop within ${stopTimeoutMs / 1000} s and is ended. Sandboxes run on.\n`);
    process.exit(1);
  }, stopTimeoutMs).unref();
  terminal.err('\nStopping. Sandboxes run on; the next start takes them over.\n');
}

/** SIGINT, SIGTERM and SIGHUP ask for a clean stop. A second Ctrl-C is an impatient person; `down` may ask twice. */
export function stopSignal(): { asked: Promise<void>; signal: AbortSignal } {
  const controller = new AbortController();
  const asked = Promise.withResolvers<void>();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (controller.signal.aborted && name === 'SIGINT') process.exit(1);
      controller.abort(new AtollError('canceled', 'The start was interrupted.'));
      asked.resolve();
    });
  }
  return { asked: asked.promise, signal: controller.signal };
}
