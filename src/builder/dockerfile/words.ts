import { parseJson } from '../../base/json-text.ts';

/** Splits at white space outside of quotes. Quotes and escapes stay: they matter when variables are expanded. */
export function splitWords(text: string, escape: string): string[] {
  const words: string[] = [];
  let start = -1;
  let quote = '';
  for (let index = 0; index < text.length; index++) {
    const character = text[index] ?? '';
    if (quote === '' && isSpace(character)) {
      if (start >= 0) words.push(text.slice(start, index));
      start = -1;
      continue;
    }
    if (start < 0) start = index;
    if (character === escape && quote !== "'") index++;
    else if (quote === character) quote = '';
    else if (quote === '' && (character === '"' || character === "'")) quote = character;
  }
  if (start >= 0) words.push(text.slice(start));
  return words;
}

/** The array of a JSON form (`["a", "b"]`), or null if it is a shell form. */
export function jsonForm(text: string): string[] | null {
  if (!text.trimStart().startsWith('[')) return null;
  // As in Docker, anything but JSON is a command.
  const value = parseJson(text);
  return Array.isArray(value) && value.every(item => typeof item === 'string') ? value : null;
}

/** The `--name=value` words at the beginning, and what follows them. */
export function takeFlags(text: string): { flags: Map<string, string[]>; rest: string } {
  const flags = new Map<string, string[]>();
  let at = 0;
  const skipSpace = () => {
    while (at < text.length && isSpace(text[at] ?? '')) at++;
  };
  for (skipSpace(); text.startsWith('--', at); skipSpace()) {
    let end = at;
    while (end < text.length && !isSpace(text[end] ?? '')) end++;
    const word = text.slice(at + 2, end);
    const equals = word.indexOf('=');
    const name = equals < 0 ? word : word.slice(0, equals);
    if (!/^[a-z][a-z-]{0,31}$/.test(name)) break;
    const values = flags.get(name) ?? [];
    values.push(equals < 0 ? 'true' : word.slice(equals + 1));
    flags.set(name, values);
    at = end;
  }
  return { flags, rest: text.slice(at) };
}

/** Whether a character is white space in Unicode. */
export function isSpace(character: string): boolean {
  return character === ' ' || character === '\t' || character === '\n' || character === '\r' || character.trim() === '';
}
