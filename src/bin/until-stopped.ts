import { AtollError, type ErrorCode } from '../base/error.ts';
import type { Terminal } from '../cli/terminal/command.ts';
import { type ServiceManager, serviceManager } from './systemd/notify.ts';
import { refusedExitCode } from './systemd/unit.ts';

/** Conventional exit code for "ended by SIGINT", if that comes before the platform serves. */
const interruptedExitCode = 130;

/**
 * How long requests in flight and standby sandboxes may take to end, milliseconds; the next start cleans up the rest.
 */
const stopTimeoutMs = 30_000;

/** Codes of starts that would be refused again, so that retrying is useless. A port, in contrast, may be free soon. */
const lastingCodes: readonly ErrorCode[] = ['invalid', 'precondition', 'unimplemented'];

/**
 * What runs in the foreground. `serving`: what it does, shown as the service manager's status. `goesDown`: whether its
 * sandboxes are ended after it.
 */
type Running = AsyncDisposable & { failed: Promise<never>; serving: string; goesDown?(): boolean };

/**
 * Runs in the foreground what `start` starts, until a signal stops it or it fails. Answers the exit code. `service`:
 * the command, and the service manager that started it; absent if nobody is to be notified.
 */
export async function runUntilStopped(
  terminal: Terminal,
  start: (signal: AbortSignal, manager: ServiceManager) => Promise<Running>,
  service?: { command: string; manager: ServiceManager },
): Promise<number> {
  const stop = stopSignal();
  const manager = service?.manager ?? serviceManager({});
  try {
    await using running = await start(stop.signal, manager);
    manager.notify('READY=1', `STATUS=${running.serving}`);
    using _ = keepNotifying(manager);
    await Promise.race([stop.asked, running.failed]);
    const goesDown = running.goesDown?.() ?? false;
    manager.notify('STOPPING=1', `STATUS=Stopping; sandboxes ${goesDown ? 'end after it' : 'run on'}`);
    beginStopping(terminal, goesDown);
  } catch (error) {
    if (service) return failedUnder(service, error, stop.signal, terminal);
    if (!stop.signal.aborted) throw error;
    terminal.err('Interrupted.\n');
    return interruptedExitCode;
  }
  return 0;
}

/** Puts the reason into the manager's status, and answers the exit code that says whether another try makes sense. */
function failedUnder(
  { command, manager }: { command: string; manager: ServiceManager },
  error: unknown,
  signal: AbortSignal,
  terminal: Terminal,
): number {
  if (signal.aborted) return 0;
  if (!(error instanceof AtollError)) throw error;
  manager.notify(`STATUS=${error.message.split('\n')[0]}`);
  terminal.err(`atoll ${command}: ${error.message}\n`);
  return lastingCodes.includes(error.code) ? refusedExitCode : 1;
}

/** Tells the service manager's watchdog that this event loop turns, until disposed of. */
function keepNotifying({ watchdogMs, notify }: ServiceManager): Disposable {
  if (watchdogMs === undefined) return { [Symbol.dispose]() {} };
  const timer = setInterval(() => notify('WATCHDOG=1'), watchdogMs / 3);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Announces that the platform stops, and ends this process if that takes too long. */
function beginStopping(terminal: Pick<Terminal, 'err'>, goesDown: boolean): void {
  const sandboxes = goesDown ? 'Sandboxes are ended after it' : 'Sandboxes run on';
  setTimeout(() => {
    terminal.err(`The platform did not stop within ${stopTimeoutMs / 1000} s and is ended. ${sandboxes}.\n`);
    process.exit(1);
  }, stopTimeoutMs).unref();
  terminal.err(`\nStopping. ${sandboxes}${goesDown ? '' : '; the next start takes them over'}.\n`);
}

/**
 * SIGINT, SIGTERM and SIGHUP ask for a clean stop. A second Ctrl-C comes from an impatient person; `down` may ask
 * twice.
 */
function stopSignal(): { asked: Promise<void>; signal: AbortSignal } {
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
