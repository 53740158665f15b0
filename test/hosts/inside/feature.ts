import { setTimeout as sleep } from 'node:timers/promises';

/** The result of examining a feature of the platform on a host. */
export type Finding = {
  feature: string;
  /** `refused`: it is missing, and the platform says so, with the reason in `detail`. */
  verdict: 'works' | 'refused' | 'fails';
  detail: string;
};

/** How much of the machine's memory an idle sandbox takes. */
export const idleFeature = 'idle sandbox';

/** Thrown if the platform says, as documented, that this host can't do it. */
export class Refused extends Error {}

/** A feature, and how to examine it: answers what was seen, or fails. */
export type Feature = { name: string; look(): Promise<string | void> };

/** By the machine's own clock; only for what hangs. */
const featureTimeoutMs = 5 * 60_000;

/** Examines the features one after another and prints a line of JSON for each. */
export async function lookAt(features: Feature[], only: string[]): Promise<void> {
  for (const { name, look } of features) {
    if (only.length > 0 && !only.includes(name)) continue;
    const startedAt = Date.now();
    const late = sleep(featureTimeoutMs, undefined, { ref: false }).then(() =>
      Promise.reject(new Error(`no end after ${featureTimeoutMs / 1000} s`)),
    );
    const verdict = await Promise.race([look(), late]).then(
      (detail): Omit<Finding, 'feature'> => ({ verdict: 'works', detail: detail ?? '' }),
      (error: unknown): Omit<Finding, 'feature'> => ({
        verdict: error instanceof Refused ? 'refused' : 'fails',
        detail: String(error).slice(0, 600),
      }),
    );
    const finding: Finding & { tookMs: number } = { feature: name, ...verdict, tookMs: Date.now() - startedAt };
    process.stdout.write(`${JSON.stringify(finding)}\n`);
  }
}

/** Fails, with both values, if they differ. */
export function same(seen: unknown, expected: unknown, what: string): void {
  const [a, b] = [JSON.stringify(seen), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a}, not ${b}`);
}
