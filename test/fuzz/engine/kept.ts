import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashOf } from './random.ts';
import type { Pump } from './target.ts';

/** Where inputs that once failed are kept, one folder per target. */
export const keptFolder = join(import.meta.dir, '../crashes');

const inputEnding = '.bin';
const pumpEnding = '.pump.json';

type Kept = { inputs: { file: string; bytes: Buffer }[]; pumps: { file: string; pump: Pump }[] };

/** The kept inputs of a target. */
export function readKept(name: string, folder = keptFolder): Kept {
  const own = join(folder, name);
  const files = existsSync(own) ? readdirSync(own).sort() : [];
  return {
    inputs: files
      .filter(file => file.endsWith(inputEnding))
      .map(file => ({ file, bytes: readFileSync(join(own, file)) })),
    pumps: files
      .filter(file => file.endsWith(pumpEnding))
      .map(file => ({ file, pump: JSON.parse(readFileSync(join(own, file), 'utf8')) as Pump })),
  };
}

/** Keeps a failing input, and answers the file. */
export function keep(name: string, found: { input: Buffer } | { pump: Pump }, folder = keptFolder): string {
  const content = 'input' in found ? found.input : Buffer.from(`${JSON.stringify(found.pump)}\n`);
  const file = join(
    folder,
    name,
    `${hashOf(content).toString(16).padStart(8, '0')}${'input' in found ? inputEnding : pumpEnding}`,
  );
  mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(file, content);
  return file;
}
