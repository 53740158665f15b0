import type { Marks } from './read-directory.ts';

/**
 * Reads the output of native/confine.c: for each attribute the directory's path, its name and its value, each ended by
 * a NUL.
 */
export async function readMarks(input: AsyncIterable<Uint8Array>): Promise<Marks> {
  const parts: Uint8Array[] = [];
  for await (const part of input) parts.push(part);
  const fields = Buffer.concat(parts).toString('latin1').split('\0');
  const marks = new Map<string, Map<string, Uint8Array>>();
  for (let at = 0; at + 2 < fields.length; at += 3) {
    const [path = '', name = '', value = ''] = fields.slice(at, at + 3);
    const known = marks.get(path) ?? new Map<string, Uint8Array>();
    marks.set(path, known.set(name, Buffer.from(value, 'latin1')));
  }
  return marks;
}
