import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../support/platform.ts';

/** A sentence of the documents that says how things are without exception. */
type PromiseSentence = { file: string; text: string };

const words = /\b(never|always|nothing|at most)\b/i;
/** These documents are about words, examined hosts, or others' measurements. */
const leftOut = new Set(['docs/glossary.md', 'docs/hosts.md', 'docs/performance.md']);

/**
 * Sentences with *never*, *always*, *nothing* or *at most* in README.md, SECURITY.md, docs and its guides, in order.
 */
export function promiseSentences(): PromiseSentence[] {
  const docs = readdirSync(join(repository, 'docs')).filter(name => name.endsWith('.md'));
  const guides = readdirSync(join(repository, 'docs/guides')).map(name => `docs/guides/${name}`);
  const files = ['README.md', 'SECURITY.md', ...docs.map(name => `docs/${name}`).sort(), ...guides.sort()];
  return files
    .filter(file => !leftOut.has(file))
    .flatMap(file =>
      sentencesOf(readFileSync(join(repository, file), 'utf8'))
        .filter(text => words.test(text))
        .map(text => ({ file, text })),
    );
}

/**
 * The sentences of a Markdown text: wrapped lines are joined, table cells and list items are separate, code blocks are
 * left out.
 */
export function sentencesOf(markdown: string): string[] {
  const blocks = markdown
    .replaceAll(/^```[\s\S]*?^```$/gm, '')
    .split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.|\||#|>)\s?)/)
    .flatMap(block => (block.trimStart().startsWith('|') ? block.split(/(?<!\\)\|/) : [block]));
  return blocks
    .map(block =>
      block
        .replaceAll(/\s+/g, ' ')
        .replace(/^\s*(?:[-*>#]+|\d+\.) /, '')
        .trim(),
    )
    .flatMap(block => block.split(/(?<=[.!?:;])\s+(?=[A-Z`*[])/))
    .filter(text => text !== '');
}
