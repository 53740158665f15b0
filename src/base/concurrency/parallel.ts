/** Runs `work` on every item, `atOnce` of them at a time. Waits for all; then throws the first error, if any. */
export async function forEachParallel<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const errors: unknown[] = [];
  const lane = async () => {
    for (const item of queue) {
      try {
        await work(item);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, lane));
  if (errors.length > 0) throw errors[0];
}
