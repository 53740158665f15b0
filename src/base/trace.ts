import { AsyncLocalStorage } from 'node:async_hooks';

type Step = { name: string; durationMs: number };

const active = new AsyncLocalStorage<Step[]>();

/** Does `work` and, where somebody traces, notes how long it took under `name` (a token of RFC 9110). Steps may nest. */
export async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  const steps = active.getStore();
  if (!steps) return work();
  const startMs = performance.now();
  try {
    return await work();
  } finally {
    steps.push({ name, durationMs: performance.now() - startMs });
  }
}

/** Does `work` and answers its steps as the value of a `Server-Timing` header (W3C Server Timing), ms, in the order in which they ended. */
export async function traced<T>(work: () => Promise<T>): Promise<{ result: T; serverTiming: string }> {
  const steps: Step[] = [];
  const startMs = performance.now();
  const result = await active.run(steps, work);
  steps.push({ name: 'total', durationMs: performance.now() - startMs });
  return { result, serverTiming: steps.map(({ name, durationMs }) => `${name};dur=${durationMs.toFixed(3)}`).join(', ') };
}
