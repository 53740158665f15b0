import { AtollError } from '../error.ts';

/** Characters of a word, before and after expansion: a program's variable can't be much longer. */
export const wordCharactersMax = 65_536;
/** Characters of inline content in a file, before and after expansion. */
export const textCharactersMax = 1 << 20;
/** Characters of all words of one instruction after expansion: each may be a variable that is long. */
const wordsCharactersMax = 1 << 20;
/** Nesting of defaults within defaults. */
const nestingMax = 16;

type LookUp = (name: string) => string | undefined;

/** The text that is read, once and from left to right, so that the time grows only with its length. */
type Reading = { text: string; at: number; lookUp: LookUp; charactersMax: number; quotes: boolean };

/**
 * Expands a word of a Dockerfile as Docker does: replaces variables (`$NAME`, `${NAME}`, `${NAME:-default}`,
 * `${NAME:+alternative}`, `${NAME:?why it is needed}`), then removes quotes and escapes. In single quotes nothing is
 * replaced. Errors: `invalid` for a word that is too long, nested too deeply or not closed, for a variable that is
 * needed, and for any other form.
 */
export function expandWord(word: string, lookUp: LookUp): string {
  return expand({ text: word, at: 0, lookUp, charactersMax: wordCharactersMax, quotes: true });
}

/** Expands the words of one instruction. Errors: as above, also for words that are too long together. */
export function expandWords(words: readonly string[], lookUp: LookUp): string[] {
  let characters = 0;
  return words.map(word => {
    const expanded = expandWord(word, lookUp);
    characters += expanded.length;
    assertLength(characters, wordsCharactersMax);
    return expanded;
  });
}

/** Replaces variables alone, for text in which quotes mean nothing, such as a here-document. Errors: as above. */
export function expandText(text: string, lookUp: LookUp): string {
  return expand({ text, at: 0, lookUp, charactersMax: textCharactersMax, quotes: false });
}

function expand(reading: Reading): string {
  assertLength(reading.text.length, reading.charactersMax);
  return readParts(reading, 0);
}

/** Reads to the end or, within braces (`depth` > 0), up to and including the closing one. */
function readParts(reading: Reading, depth: number): string {
  const { text, charactersMax, quotes } = reading;
  let result = '';
  let quote = '';
  while (reading.at < text.length) {
    const character = text[reading.at++] ?? '';
    if (character === '$' && quote !== "'") {
      const value = readVariable(reading, depth);
      assertLength(result.length + value.length, charactersMax);
      result += value;
    } else if (depth > 0 && character === '}' && quote === '') return result;
    else if (character === '\\' && quote !== "'") result += readEscaped(reading, quote);
    else if (!quotes || (character !== '"' && character !== "'")) result += character;
    else if (quote === character) quote = '';
    else if (quote === '') quote = character;
    else result += character;
  }
  if (depth > 0) throw new AtollError('invalid', 'a variable in braces is not closed: } is missing');
  return result;
}

function readEscaped(reading: Reading, quote: string): string {
  const next = reading.text[reading.at] ?? '';
  if (!reading.quotes) {
    if (next !== '$') return '\\';
    reading.at++;
    return next;
  }
  reading.at++;
  if (next === '') return '\\';
  // In double quotes, a backslash before a character that it does not protect stands for itself.
  return quote === '"' && !'"$\\'.includes(next) ? `\\${next}` : next;
}

/** Reads what follows a `$`. Where that names no variable, the `$` stands for itself. */
function readVariable(reading: Reading, depth: number): string {
  const { text, lookUp } = reading;
  const isBraced = text[reading.at] === '{';
  const start = reading.at + (isBraced ? 1 : 0);
  let end = start;
  while (isNameCharacter(text.charCodeAt(end), end > start)) end++;
  if (end === start) return '$';
  const name = text.slice(start, end);
  if (!isBraced) {
    reading.at = end;
    return lookUp(name) ?? '';
  }
  const withColon = text[end] === ':';
  const operator = text[withColon ? end + 1 : end] ?? '';
  if (text[end] === '}') {
    reading.at = end + 1;
    return lookUp(name) ?? '';
  }
  // Leaving it unchanged would give it another meaning than in Docker.
  if (operator === '' || !'-+?'.includes(operator))
    throw new AtollError(
      'invalid',
      `\${${name}${text.slice(end, end + 2)}… is no form of a variable that is known here`,
    );
  if (depth >= nestingMax) throw new AtollError('invalid', `variables are nested more than ${nestingMax} deep`);
  reading.at = end + (withColon ? 2 : 1);
  const alternative = readParts(reading, depth + 1);
  const value = lookUp(name);
  // With a colon, an empty value counts as none.
  const isSet = value !== undefined && (!withColon || value !== '');
  if (operator === '?' && !isSet)
    throw new AtollError('invalid', `${name}: ${alternative.slice(0, 200) || 'it must be set'}`);
  if (operator !== '+') return isSet ? value : alternative;
  return isSet ? alternative : '';
}

function isNameCharacter(code: number, digitsToo: boolean): boolean {
  const isLetter = (code >= 65 && code <= 90) || (code >= 97 && code <= 122) || code === 95;
  return isLetter || (digitsToo && code >= 48 && code <= 57);
}

function assertLength(length: number, charactersMax: number): void {
  if (length > charactersMax)
    throw new AtollError('invalid', `what variables stand for is longer than ${charactersMax} characters`);
}
