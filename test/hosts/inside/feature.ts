import { setTimeout as sleep } from 'node:timers/promises';

/** How a feature of the platform was found on a host. */
export type Finding = {
  feature: string;
  /** `refused`: not there, and the platform says so, with the reason in `detail`. */
  verdict: 'works' | 'refused' | 'fails';
  detail: string;
};

/** What an idle sandbox takes of the machine's memory. */
export const idleFeature = 'idle sandbox';

/** Thrown where the platform says, as documented, that this host can't do it. */
export class Refused extends Error {}

/** A feature, and how to see it: it answers what was seen, or fails. */
export type Feature = { name: string; look(): Promise<string | void> };

/** By the machine's own clock; this is for what hangs. */
const featureTimeoutMs = 5 * 60_000;

/** Looks at the features one after the other and prints a line of JSON for each. */
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

/** Fails, saying both, where they differ. */
export function same(seen: unknown, expected: unknown, what: string): void {
  const [a, b] = [JSON.stringify(seen), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a}, not ${b}`);
}
