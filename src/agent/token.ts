/**
 * Compares two secrets without telling by its duration where they differ: their digests are compared, whole.
 * Not with node:crypto, which every sandbox would pay for with 1.7 MiB.
 */
export function tokensEqual(a: string, b: string): boolean {
  const [digestA, digestB] = [a, b].map(text => new Bun.CryptoHasher('sha256').update(text).digest());
  let difference = 0;
  for (const [index, byte] of (digestA ?? []).entries()) difference |= byte ^ (digestB?.[index] ?? 0);
  return difference === 0 && digestA !== undefined;
}
