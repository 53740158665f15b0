import { AtollError } from '../../base/error.ts';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Does work that takes back what it has begun when it is interrupted, and throws `canceled` then, which says `told`.
 * Who interrupts twice does not wait for that.
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
