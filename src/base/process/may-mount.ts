import { readFileSync } from 'node:fs';

/** CAP_SYS_ADMIN (capabilities(7)). */
const administration = 1n << 21n;

/** Says whether this process may mount file systems. A container may only if it was given the right. */
export function mayMount(): boolean {
  const [, held] = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return (BigInt(`0x${held ?? '0'}`) & administration) !== 0n;
}
