import { join } from 'node:path';
import { parseJson } from '../../../base/json-text.ts';
import { readIfThere } from '../../../base/small-file.ts';
import { advice } from '../../../base/process/set-up.ts';

/** The runsc that set-up got, or why there is none. */
type Runsc = { found: true; program: string; version: string; source: string } | { found: false; reason: string };

/** What scripts/build-runsc.mjs has written to runsc.json. */
type Written = { program: string | null; version: string | null; source: string | null; reason?: string };

/** Looks where set-up puts gVisor's program. */
export function findRunsc(directory: string | undefined): Runsc {
  if (directory === undefined) return { found: false, reason: 'it was not set up' };
  const written = parseJson(readIfThere(join(directory, 'runsc.json')) ?? '') as Written | undefined;
  if (!written) return { found: false, reason: `it is not set up: ${advice.setUp}` };
  const { program, version, source, reason } = written;
  if (program === null || version === null || source === null)
    return { found: false, reason: reason ?? 'set-up found none' };
  return { found: true, program: join(directory, program), version, source };
}
