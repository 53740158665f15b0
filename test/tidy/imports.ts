import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root, type SourceFile } from './source-files.ts';

type Import = {
  /** As written. */
  specifier: string;
  /** The imported file, relative to the repository; undefined for packages and built-ins. */
  target: string | undefined;
  typeOnly: boolean;
};

/** Everything that a file imports, re-exports or loads by its URL. */
export function importsOf(file: SourceFile): Import[] {
  const statement =
    /^(?:import|export)\s+(type\s)?[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]|^import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)|\bnew URL\(\s*['"](\.[^'"]+\.ts)['"],\s*import\.meta\.url/gm;
  const commentless = file.text.replace(/^\s*(\/\/|\*|\/\*).*$/gm, '');
  return [...commentless.matchAll(statement)].map(match => {
    const specifier = match[2] ?? match[3] ?? match[4] ?? match[5] ?? '';
    return { specifier, target: resolve(file.path, specifier), typeOnly: match[1] !== undefined };
  });
}

function resolve(from: string, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  const path = join(from, '..', specifier);
  return existsSync(join(root, path)) ? path : undefined;
}
