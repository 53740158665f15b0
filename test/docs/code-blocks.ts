import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../support/platform.ts';

/** A program on a page, and the text that the page shows as its output. */
export type Block = {
  /** Relative to the repository. */
  page: string;
  line: number;
  language: string;
  code: string;
  output: string | null;
  /** It pauses with memory, which a machine may refuse. */
  needsMemory: boolean;
};

/** A fenced block: its first line names its language and, after a space, its mark. */
type Fenced = { page: string; line: number; language: string; mark: string; text: string };

/** Languages of programs, which are run. */
const programs = ['js', 'python', 'bash'];
/** Languages that are not run: their form, and what they are for. */
export const notRun = {
  output: 'what the program before it prints',
  console: "commands for a machine's own shell: they install, need a terminal, or name what is the reader's",
  text: 'a picture, or the form of a request',
  yaml: 'a part of a file',
  json: 'a file',
} as const;
/**
 * Marks of programs: `read` if the page is tested by other means or the program is only to be read; `memory` if it
 * pauses with memory.
 */
export const marks = ['read', 'memory'];

/** Every page of the documentation. */
function pages(): string[] {
  const below = readdirSync(join(repository, 'docs'), { recursive: true, encoding: 'utf8' }).map(
    name => `docs/${name}`,
  );
  return [...readdirSync(repository), ...below].filter(name => name.endsWith('.md')).toSorted();
}

/** Every fenced block of the documentation. */
export const allFenced = (): Fenced[] =>
  pages().flatMap(page => fencedIn(page, readFileSync(join(repository, page), 'utf8')));

/** The programs of all pages, in order: later ones of a page may need what an earlier one has made. */
export const blocksOfPages = (): Block[] =>
  Map.groupBy(allFenced(), ({ page }) => page)
    .values()
    .toArray()
    .flatMap(programsOf);

/** The fenced blocks of a text. */
export function fencedIn(page: string, text: string): Fenced[] {
  return [...text.matchAll(/^ *```(\w*)(?: (\w+))?\n([\s\S]*?)^ *```$/gm)].map(match => {
    const [, language = '', mark = '', code = ''] = match;
    return { page, line: text.slice(0, match.index).split('\n').length, language, mark, text: code };
  });
}

/** The programs among the blocks of a page; a block in `output` belongs to the one before it. */
export function programsOf(fenced: readonly Fenced[]): Block[] {
  const blocks: Block[] = [];
  for (const { page, line, language, mark, text } of fenced) {
    const last = blocks.at(-1);
    if (language === 'output' && last) last.output = text;
    if (!isProgram(language, mark)) continue;
    blocks.push({ page, line, language, code: text, output: null, needsMemory: mark === 'memory' });
  }
  return blocks;
}

/** Whether a block is run. */
export const isProgram = (language: string, mark: string): boolean => programs.includes(language) && mark !== 'read';
