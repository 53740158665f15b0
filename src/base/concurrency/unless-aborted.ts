import { AtollError } from '../error.ts';

/**
 * Ends the wait for `work`, not the work itself, when `signal` aborts: the wait then fails with `canceled` and
 * `message`.
 */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal, message: string): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(new AtollError('canceled', message));
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  return Promise.race([work, aborted.promise]).finally(() => signal.removeEventListener('abort', onAbort));
}
