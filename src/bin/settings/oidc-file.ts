import { readFileSync } from 'node:fs';
import { validator } from '../../api/http/validate.ts';
import { AtollError, messageOf } from '../../base/error.ts';
import { OidcFile } from '../../protocol/oidc.ts';
import type { Settings } from './settings.ts';

/**
 * The content of the file `ATOLL_OIDC_FILE`; null if none is named. Errors: `invalid`, with the file, the member and
 * the rule.
 */
export function readOidcFile({ oidcFile }: Pick<Settings, 'oidcFile'>): OidcFile | null {
  if (oidcFile === undefined) return null;
  try {
    return validator(OidcFile, 'the file', 'refuse')(JSON.parse(readFileSync(oidcFile, 'utf8'))) as OidcFile;
  } catch (error) {
    // A parser's message quotes what it has read, which may be the secret.
    const why = error instanceof SyntaxError ? 'it is no JSON' : messageOf(error);
    throw new AtollError('invalid', `ATOLL_OIDC_FILE: ${oidcFile}: ${why}`);
  }
}
