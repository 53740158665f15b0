import { statSync } from 'node:fs';
import { AtollError, messageOf } from '../../base/error.ts';
import { readAuthorities } from '../../node/builds/authorities.ts';
import { type Settings, settingsTable } from '../settings/settings.ts';

/**
 * Fails with `precondition` if the authorities that builds must trust are missing: builds would fail much later, with
 * misleading words of pip or npm. The default folder may be missing, and any folder may still be empty.
 */
export function requireAuthorities({ buildAuthorities: path }: Pick<Settings, 'buildAuthorities'>): void {
  const place = statSync(path, { throwIfNoEntry: false });
  if (path === '/dev/null' || (!place && path === settingsTable.buildAuthorities.fallback)) return;
  const why = place ? (place.isDirectory() ? undefined : whyNone(path)) : 'is not there';
  if (why === undefined) return;
  throw new AtollError(
    'precondition',
    `ATOLL_BUILD_CA is ${path}, which ${why}: set it to a PEM file or a folder of them, or to /dev/null for none.`,
  );
}

function whyNone(file: string): string | undefined {
  try {
    return readAuthorities(file) === undefined ? 'has no certificate as PEM' : undefined;
  } catch (error) {
    return `can't be read (${messageOf(error)})`;
  }
}
