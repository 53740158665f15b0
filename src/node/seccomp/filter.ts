import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { ifThere } from '../../base/if-there.ts';
import { advice } from '../../base/process/set-up.ts';

/** struct sock_filter (linux/filter.h). */
const instructionBytes = 8;

/**
 * The seccomp filter of every sandbox, as an array of `struct sock_filter`: set-up has compiled it from native/seccomp
 * with libseccomp, into a folder next to the helper. The runtime gets it ready-made, because compiling a profile would
 * cost it 15 to 28 ms per sandbox. Errors: `unavailable` if set-up has made none.
 */
export function readSeccompFilter(helperBinary: string, architecture: string = process.arch): Uint8Array {
  const path = join(dirname(helperBinary), 'seccomp', `${architecture}.bpf`);
  const bytes = ifThere(() => readFileSync(path), undefined);
  if (bytes === undefined || bytes.length === 0 || bytes.length % instructionBytes !== 0)
    throw new AtollError('unavailable', `the filter of system calls is not at ${path}: ${advice.setUp}`);
  return bytes;
}
