import type { OperatorSizes } from './operator.ts';

/** What an environment asks for: 10,000 sandboxes and 5 seconds for each load unless it says otherwise. */
export function sizesOf(environment: Record<string, string | undefined>, share = 1): OperatorSizes {
  return {
    sandboxes: Number(environment['OPERATOR_SANDBOXES'] ?? Math.ceil(10_000 * share)),
    seconds: Number(environment['OPERATOR_SECONDS'] ?? 5 * share),
  };
}
