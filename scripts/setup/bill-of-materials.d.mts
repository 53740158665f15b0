/** Types of bill-of-materials.mjs for the tests, which are checked. */
export function isForSupportedMachines(entry: {
  os?: string | string[];
  cpu?: string | string[];
  libc?: string | string[];
}): boolean;
