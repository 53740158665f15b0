import { readFileSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';

export const root = join(import.meta.dir, '../..');

export type SourceFile = {
  /** Relative to the repository, with `/`. */
  path: string;
  text: string;
  /** The text with comments and the insides of strings blanked out, line by line at the same place. */
  code: string;
};

/** Every file with one of the extensions below the given folders, ordered by path. */
export function sourceFiles(folders: string[], endings = ['.ts', '.tsx']): SourceFile[] {
  const paths = folders.flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile() && endings.some(ending => entry.name.endsWith(ending)))
      .map(entry => relative(root, join(entry.parentPath, entry.name))),
  );
  return paths
    .filter(path => !path.includes('node_modules/'))
    .sort()
    .map(path => {
      const text = readFileSync(join(root, path), 'utf8');
      return { path, text, code: blanked(text) };
    });
}

export const isTest = (path: string): boolean => path.endsWith('.test.ts') || path.endsWith('.node.ts');

/**
 * Comments and string contents become spaces, so that a rule about code does not trip over words. Template literals
 * keep their text: what they interpolate is code.
 */
function blanked(text: string): string {
  const tokens =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])*\/[dgimsuvy]*(?=[\s,;.)\]])/g;
  return text.replace(tokens, token => (token.startsWith('`') ? token : token.replace(/[^\n]/g, ' ')));
}
