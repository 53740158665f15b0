import { allocatorSettings } from '../../../../base/process/allocator.ts';
import { commandOfProgram } from '../../../../base/process/own-program.ts';
import { readFromProxy, type FromProxy, type ToProxy } from './messages.ts';

/** The process of an egress proxy. */
export type ProxyChild = {
  readonly pid: number;
  /** Does nothing for a process that has ended, or has closed its end. */
  send(message: ToProxy): void;
  disconnect(): void;
  kill(signal: NodeJS.Signals): void;
  exited: Promise<number>;
};

/**
 * Takes rights from all threads of the process, even from those that exist before it gives up root: no program that it
 * runs gets more than it has.
 */
const withoutRights = ['setpriv', '--no-new-privs', '--inh-caps=-all', '--'];

/**
 * Starts the process. Its environment contains only the allocator's settings: none of the platform's, so what it runs
 * on does not depend on the caller's. Messages are JSON, because root reads what it sends.
 */
export function spawnProxy(handlers: { onMessage(message: FromProxy): void; onExit(): void }): ProxyChild {
  const child = Bun.spawn([...withoutRights, ...commandOfProgram('egress-proxy')], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: allocatorSettings,
    cwd: '/',
    serialization: 'json',
    ipc(message: unknown) {
      const understood = readFromProxy(message);
      if (understood) handlers.onMessage(understood);
    },
    onExit: handlers.onExit,
  });
  return {
    pid: child.pid,
    exited: child.exited,
    send(message) {
      try {
        child.send(message);
      } catch (error) {
        // A process that was killed has no exit code; one that has closed its end is ended, because it leaves
        // questions unanswered.
        if (!isClosed(error)) throw error;
      }
    },
    disconnect: () => void (child.exitCode === null && child.disconnect()),
    kill: signal => child.kill(signal),
  };
}

const isClosed = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ERR_IPC_CHANNEL_CLOSED';
