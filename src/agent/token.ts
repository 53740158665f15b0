/**
 * Compares two secrets without the duration revealing where they differ: it compares their whole digests. Avoids
 * node:crypto, which would cost every sandbox 1.7 MiB.
 */
export function tokensEqual(a: string, b: string): boolean {
  const [digestA, digestB] = [a, b].map(text => new Bun.CryptoHasher('sha256').update(text).digest());
  let difference = 0;
  for (const [index, byte] of (digestA ?? []).entries()) difference |= byte ^ (digestB?.[index] ?? 0);
  return difference === 0 && digestA !== undefined;
}
