import type { OperatorSizes } from './operator.ts';

/** The sizes in an environment: by default 10,000 sandboxes and 5 seconds per load. */
export function sizesOf(environment: Record<string, string | undefined>, share = 1): OperatorSizes {
  return {
    sandboxes: Number(environment['OPERATOR_SANDBOXES'] ?? Math.ceil(10_000 * share)),
    seconds: Number(environment['OPERATOR_SECONDS'] ?? 5 * share),
  };
}
