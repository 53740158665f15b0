import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../support/platform.ts';

/** A program of a guide, and the text that the guide shows as its output. */
export type Block = {
  guide: string;
  line: number;
  language: string;
  code: string;
  output: string | null;
  /** It pauses with memory, which a machine may refuse. */
  needsMemory: boolean;
};

const guides = join(repository, 'docs/guides');
/** What is a program; other blocks are there to be read. */
const languages = ['js', 'python', 'bash'];

/** The programs of all guides, in their order: those of one guide may need what an earlier one of it has made. */
export function blocksOfGuides(): Block[] {
  const names = readdirSync(guides).filter(name => name.endsWith('.md'));
  return names.sort().flatMap(name => blocksOf(name, readFileSync(join(guides, name), 'utf8')));
}

/** The fenced blocks of a text in `js`, `python` and `bash`; a block in `output` belongs to the one before it. */
export function blocksOf(guide: string, text: string): Block[] {
  const blocks: Block[] = [];
  for (const match of text.matchAll(/^```(\w*)( memory)?\n([\s\S]*?)^```$/gm)) {
    const [, language = '', memory, code = ''] = match;
    const last = blocks.at(-1);
    if (language === 'output' && last) last.output = code;
    if (!languages.includes(language)) continue;
    const line = text.slice(0, match.index).split('\n').length;
    blocks.push({ guide, line, language, code, output: null, needsMemory: memory !== undefined });
  }
  return blocks;
}
