import { waitFor } from '../support/process.ts';

/** How long the largest of the shipped templates takes, from mirrors and registries, on a busy machine. */
export const buildMs = 40 * 60_000;

/** Creates a sandbox of a template that is built on demand: retries while the answer is that it is too early. */
export function built<T>(create: () => Promise<T>): Promise<T> {
  const tried = () =>
    create().catch((error: Error) => {
      if (/is still being built for the first time \(.+\)/.test(error.message)) return undefined;
      throw error;
    });
  return waitFor('the template', tried, buildMs);
}
