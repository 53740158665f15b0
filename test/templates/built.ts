import { waitFor } from '../support/process.ts';

/** How long the largest of the shipped templates takes, from mirrors and registries, on a busy machine. */
export const buildMs = 40 * 60_000;

/** A sandbox of a template that is built for it: who came too early is told so, and comes again. */
export function built<T>(create: () => Promise<T>): Promise<T> {
  const tried = () =>
    create().catch((error: Error) => {
      if (/is still being built for the first time \(.+\)/.test(error.message)) return undefined;
      throw error;
    });
  return waitFor('the template', tried, buildMs);
}
