import { AtollError } from '../../base/error.ts';
import type { Heredoc } from '../../protocol/build.ts';
import { isSpace, splitWords } from './words.ts';

/** Limits of a Dockerfile, far above any that a person writes. */
const dockerfileBounds = {
  charactersMax: 1 << 20,
  instructionsMax: 1_000,
  instructionCharactersMax: 65_536,
  heredocsMax: 32,
} as const;

/** One instruction: its line, with continuations joined and comments removed, and the texts that follow it inline. */
export type Instruction = {
  /** In capitals. */
  keyword: string;
  argument: string;
  /** Counted from 1. */
  line: number;
  heredocs: Heredoc[];
  /** The lines of those texts, as written. */
  following: string;
};

/** The instructions of a Dockerfile, and its escape character: `\` or a backtick. */
type InstructionFile = { instructions: Instruction[]; escape: string };

type Lines = { all: string[]; at: number };

/**
 * Splits a Dockerfile into its instructions (Dockerfile reference, "Format", "Escape character" and "Here-Documents"),
 * reading each character at most a few times. Errors: `invalid` beyond the limits.
 */
export function readInstructions(source: string): InstructionFile {
  if (source.length > dockerfileBounds.charactersMax)
    throw new AtollError('invalid', `dockerfile: is longer than ${dockerfileBounds.charactersMax} characters`);
  const lines: Lines = { all: source.split('\n').map(line => (line.endsWith('\r') ? line.slice(0, -1) : line)), at: 0 };
  const escape = readDirectives(lines);
  const instructions: Instruction[] = [];
  while (lines.at < lines.all.length) {
    if (isEmptyOrComment(lines.all[lines.at] ?? '')) {
      lines.at++;
      continue;
    }
    if (instructions.length === dockerfileBounds.instructionsMax)
      throw new AtollError(
        'invalid',
        `dockerfile: line ${lines.at + 1}: there are more than ${dockerfileBounds.instructionsMax} instructions`,
      );
    instructions.push(readInstruction(lines, escape));
  }
  return { instructions, escape };
}

/** Comments of the form `# name=value` at the beginning tell how to read the file. */
function readDirectives(lines: Lines): string {
  for (; lines.at < lines.all.length; lines.at++) {
    const text = (lines.all[lines.at] ?? '').trim();
    const equals = text.indexOf('=');
    if (!text.startsWith('#') || equals < 0) return '\\';
    const name = text.slice(1, equals).trim().toLowerCase();
    const value = text.slice(equals + 1).trim();
    if (name === 'escape' && (value === '`' || value === '\\')) {
      lines.at++;
      return value;
    }
    if (name !== 'syntax' && name !== 'check') return '\\';
  }
  return '\\';
}

function isEmptyOrComment(line: string): boolean {
  const text = line.trimStart();
  return text === '' || text.startsWith('#');
}

function readInstruction(lines: Lines, escape: string): Instruction {
  const first = lines.at;
  const parts: string[] = [];
  for (let length = 0; lines.at < lines.all.length;) {
    const line = lines.all[lines.at++] ?? '';
    // Comments and empty lines may stand between the lines of one instruction.
    if (parts.length > 0 && isEmptyOrComment(line)) continue;
    const trimmed = line.trimEnd();
    const goesOn = trimmed.endsWith(escape);
    parts.push(goesOn ? trimmed.slice(0, -1) : line);
    length += line.length;
    if (length > dockerfileBounds.instructionCharactersMax) {
      throw new AtollError(
        'invalid',
        `dockerfile: line ${first + 1}: the instruction is longer than ` +
          `${dockerfileBounds.instructionCharactersMax} characters`,
      );
    }
    if (!goesOn) break;
  }
  const text = parts.join('').trim();
  let end = 0;
  while (end < text.length && !isSpace(text[end] ?? '')) end++;
  const keyword = text.slice(0, end).toUpperCase();
  const start = lines.at;
  const heredocs = ['RUN', 'COPY', 'ADD'].includes(keyword) ? readHeredocs(text, lines, first + 1) : [];
  return {
    keyword,
    argument: text.slice(end).trim(),
    line: first + 1,
    heredocs,
    following: lines.all.slice(start, lines.at).join('\n'),
  };
}

/**
 * A word that starts a here-document: `<<NAME`, `<<-NAME` (removes leading tabs), `<<"NAME"` (expands nothing). It may
 * be followed by any character that ends a word in the shell. Here-strings, shifts, and `<<` within other words don't
 * count.
 */
const heredocWord =
  /^\d*<<(-?)(?:(["'])([^"'<]{1,128})\2|(\\?)([^\s\d<>;&|()"'\\$`][^\s<>;&|()"'\\$`]{0,127}))(?=$|[;&|>])/;

/** The words of an instruction that start here-documents, in order. */
function heredocWords(text: string): RegExpExecArray[] {
  return splitWords(text, '\\')
    .map(word => heredocWord.exec(word))
    .filter(found => found !== null);
}

/** Whether a word stands for a here-document and nothing else. */
export function isHeredoc(word: string): boolean {
  return word.startsWith('<<') && heredocWord.exec(word)?.[0] === word;
}

function readHeredocs(text: string, lines: Lines, line: number): Heredoc[] {
  const marks = heredocWords(text);
  if (marks.length > dockerfileBounds.heredocsMax)
    throw new AtollError(
      'invalid',
      `dockerfile: line ${line}: there are more than ${dockerfileBounds.heredocsMax} here-documents`,
    );
  return marks.map(([, dash, quote = '', quoted, escape = '', plain]) => {
    const name = quoted ?? plain ?? '';
    const content: string[] = [];
    for (;;) {
      const written = lines.all[lines.at++];
      if (written === undefined)
        throw new AtollError('invalid', `dockerfile: line ${line}: the here-document ${name} has no end`);
      const shown = dash ? withoutTabs(written) : written;
      if (shown === name) break;
      content.push(shown);
    }
    return { name, content: content.map(each => `${each}\n`).join(''), expand: quote === '' && escape === '' };
  });
}

function withoutTabs(line: string): string {
  let start = 0;
  while (line[start] === '\t') start++;
  return line.slice(start);
}
