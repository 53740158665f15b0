import { AtollError } from '../../base/error.ts';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs work that undoes what it has begun when interrupted, and then throws `canceled` with the text `told`. A second
 * interruption does not wait for that.
 */
export async function interruptible<T>(
  work: (signal: AbortSignal) => Promise<T>,
  told = 'Interrupted. Nothing is left of it.',
): Promise<T> {
  const controller = new AbortController();
  const abort = () => controller.abort(new AtollError('canceled', told));
  for (const name of signals) process.once(name, abort);
  try {
    return await work(controller.signal);
  } finally {
    for (const name of signals) process.off(name, abort);
  }
}
