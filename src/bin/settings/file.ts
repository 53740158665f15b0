import { statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { AtollError } from '../../base/error.ts';
import { readIfThere } from '../../base/small-file.ts';
import { readSettings, type Settings, settingsTable } from './settings.ts';

const bytesMax = 64 * 1024;

/** Path of the settings file in a data directory. */
export const settingsFileOf = (dataDir: string): string => join(dataDir, 'settings');

type Environment = Record<string, string | undefined>;
/** The source of a setting's value. */
type Source = 'environment' | 'file' | 'default';

/**
 * The settings of the environment and, where it has none, of the file `settings` in the data directory: lines
 * NAME=value, and comments that begin with #. Errors: `invalid`, naming everything that is wrong in either.
 */
export function effectiveSettings(environment: Environment): Settings {
  return readSettings(mergedSettings(environment).values);
}

/** The merged values of environment and file, and the source of each. Errors: as above, for the file. */
export function mergedSettings(environment: Environment): {
  values: Environment;
  sourceOf(variable: string): Source;
  file: string;
} {
  const { variable, fallback = '' } = settingsTable.dataDir;
  const dataDir = environment[variable] || fallback;
  const file = settingsFileOf(dataDir);
  const fromFile = isAbsolute(dataDir) ? readSettingsFile(file) : {};
  const sourceOf = (name: string) => (environment[name] ? 'environment' : fromFile[name] ? 'file' : 'default');
  // An empty variable counts as unset and does not hide the file's value.
  const set = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  return { values: { ...fromFile, ...set }, sourceOf, file };
}

function readSettingsFile(file: string): Record<string, string> {
  const text = readIfThere(file);
  if (text === undefined) return {};
  if (statSync(file).size > bytesMax)
    throw new AtollError('invalid', `${file} is longer than ${bytesMax / 1024} KiB: it is no settings file.`);
  const known = new Set(Object.values(settingsTable).map(({ variable }) => variable));
  const values: Record<string, string> = {};
  const problems: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const stated = line.trim();
    if (stated === '' || stated.startsWith('#')) continue;
    const equals = stated.indexOf('=');
    const name = equals < 0 ? stated : stated.slice(0, equals).trim();
    const problem = problemOf(name, equals, known, values);
    if (problem === undefined) values[name] = unquoted(stated.slice(equals + 1).trim());
    else problems.push(`${file}, line ${index + 1}: ${problem}`);
  }
  if (problems.length > 0) throw new AtollError('invalid', problems.join('\n'));
  return values;
}

function problemOf(
  name: string,
  equals: number,
  known: ReadonlySet<string>,
  values: Record<string, string>,
): string | undefined {
  if (equals < 0) return 'must be NAME=value or begin with #.';
  if (name === settingsTable.dataDir.variable) return `${name} says where this file is and can't be set in it.`;
  if (!known.has(name)) return `'${name}' is not a setting; \`atoll config\` lists them.`;
  return values[name] === undefined ? undefined : `${name} is set a second time.`;
}

/** People quote the whole value out of shell habit. */
function unquoted(value: string): string {
  const [quote] = value;
  return value.length > 1 && (quote === '"' || quote === "'") && value.endsWith(quote) ? value.slice(1, -1) : value;
}
