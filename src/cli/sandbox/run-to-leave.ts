import { AtollError } from '../../base/error.ts';
import { interruptible } from '../terminal/interruptible.ts';
import type { Terminal } from '../terminal/command.ts';
import type { AgentWay } from './open.ts';
import { runInside, type Inside, type Told } from './run-inside.ts';

/**
 * Runs a command as `runInside` does. If this process is interrupted or nobody reads its output any more, it ends the
 * command inside and everything the command has started: nobody inside would notice, and it would run as long as the
 * sandbox. Throws `canceled` if interrupted.
 */
export async function runToLeave(
  way: AgentWay,
  { whenUnread }: Pick<Terminal, 'whenUnread'>,
  inside: Inside,
  told: Told,
): Promise<number> {
  const started = Promise.withResolvers<number>();
  const release = whenUnread?.(async () => endInside(way, await started.promise));
  try {
    return await interruptible(async signal => {
      // A command that has not begun can't be ended.
      const left = new AbortController();
      const leave = () => void started.promise.then(() => left.abort(signal.reason));
      signal.addEventListener('abort', leave, { once: true });
      const onStart = (pid: number) => {
        started.resolve(pid);
        told.onStart(pid);
      };
      return runInside(way, inside, { ...told, onStart }, left.signal);
    }, 'Interrupted: the command was ended.');
  } catch (error) {
    if (error instanceof AtollError && error.code === 'canceled') await endInside(way, await started.promise);
    throw error;
  } finally {
    release?.();
  }
}

/** How long a command may tidy up before it is killed, tenths of a second. */
const patience = 50;

/** Ends a command, which leads a process group. Does so as root, because the command may have become another user. */
async function endInside(way: AgentWay, pid: number): Promise<void> {
  const group = `-- -${pid}`;
  const line =
    `kill -TERM ${group}; for _ in {1..${patience}}; do kill -0 ${group} || exit 0; sleep 0.1; done; ` +
    `kill -KILL ${group}`;
  const quiet = { onStart: () => {}, onStdout: () => {}, onStderr: () => {} };
  try {
    await runInside(way, { line: `{ ${line}; } 2> /dev/null`, envs: {}, user: 'root', cwd: '/' }, quiet);
  } catch (cause) {
    throw new AtollError('unavailable', 'Interrupted, and the command could not be ended: it may run on inside.', {
      cause,
    });
  }
}
