import { expect, test } from 'bun:test';
import { isTest, sourceFiles } from './source-files.ts';

/**
 * Exports that still lack a comment, by folder of `src`. A number may only fall. A folder that is not listed lacks
 * none.
 */
const missing: Record<string, number> = {};

const exported =
  /^export (?:declare |abstract |async )*(?:const|let|function\*?|class|type|interface|enum) (\w+)(?<rest>.*)$/;
/** These add nothing to their source, whose comment is theirs. */
const repeats = /^ = (?:Static<typeof \w+>|\(typeof \w+\)\[number\]|keyof typeof \w+);|^ = schemaOf<\w+>\(\)\(/;

/** The exports of a text without a doc comment right above them, by name, and their number. */
function undocumented(text: string): { names: string[]; exports: number } {
  const lines = text.split('\n');
  const seen = new Set<string>();
  const names: string[] = [];
  let exports = 0;
  for (const [index, line] of lines.entries()) {
    const match = exported.exec(line);
    if (!match) continue;
    const [, name = ''] = match;
    exports++;
    // Overloads of a function, and a type of the same name as a value, are documented by the first of them.
    if (seen.has(name)) continue;
    seen.add(name);
    if (!repeats.test(match.groups?.['rest'] ?? '') && !hasDoc(lines, index)) names.push(name);
  }
  return { names, exports };
}

function hasDoc(lines: readonly string[], index: number): boolean {
  let at = index - 1;
  if (!lines[at]?.trimEnd().endsWith('*/')) return false;
  while (at > 0 && !lines[at]?.trimStart().startsWith('/*')) at--;
  return lines[at]?.startsWith('/**') === true;
}

// A name says what something is; its promise, units and errors are stated nowhere else.
test('every export says what it promises', () => {
  const found: Record<string, string[]> = {};
  let exports = 0;
  for (const { path, text } of sourceFiles(['src'], ['.ts', '.tsx'])) {
    if (isTest(path)) continue;
    const file = undocumented(text);
    exports += file.exports;
    const folder = path.split('/').slice(0, 2).join('/');
    (found[folder] ??= []).push(...file.names.map(name => `${path} ${name}`));
  }
  expect(exports).toBeGreaterThan(2000);
  for (const [folder, names] of Object.entries(found)) {
    const allowed = missing[folder] ?? 0;
    if (allowed === 0) expect(names).toEqual([]);
    else expect(names.length, folder).toBeLessThanOrEqual(allowed);
  }
  expect(Object.keys(missing).filter(folder => !(folder in found))).toEqual([]);
});

test('an export without a comment is found, and one that repeats is not', () => {
  const text = [
    'export const bare = 1;',
    '/** Bytes of a block. */',
    'export const blockSize = 4096;',
    '/* Not a doc comment. */',
    'export async function load() {}',
    'export type Shape = Static<typeof Schema>;',
    'export const Entry = schemaOf<VolumeEntry>()(',
    '/**',
    ' * Two lines.',
    ' */',
    'export class Known {}',
    'export type Known = string;',
  ].join('\n');
  expect(undocumented(text)).toEqual({ names: ['bare', 'load'], exports: 7 });
});
