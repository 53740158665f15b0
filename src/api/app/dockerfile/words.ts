/** Cuts at white space outside of quotes. Quotes and escapes stay: they matter when variables are expanded. */
export function splitWords(text: string, escape: string): string[] {
  const words: string[] = [];
  let word = '';
  let quote = '';
  for (let index = 0; index < text.length; index++) {
    const character = text[index] ?? '';
    if (character === escape && quote !== "'") {
      word += character + (text[++index] ?? '');
      continue;
    }
    if (quote === '' && /\s/.test(character)) {
      if (word !== '') words.push(word);
      word = '';
      continue;
    }
    if (quote === character) quote = '';
    else if (quote === '' && (character === '"' || character === "'")) quote = character;
    word += character;
  }
  if (word !== '') words.push(word);
  return words;
}

/** The array of a JSON form (`["a", "b"]`), or null for a shell form. */
export function jsonForm(text: string): string[] | null {
  if (!text.trim().startsWith('[')) return null;
  try {
    const value = JSON.parse(text) as unknown;
    return Array.isArray(value) && value.every(item => typeof item === 'string') ? value : null;
  } catch {
    return null; // as Docker does: what is no JSON is a command
  }
}

/** `--name=value` words at the beginning, and what follows them. */
export function takeFlags(text: string): { flags: Map<string, string[]>; rest: string } {
  const flags = new Map<string, string[]>();
  let rest = text.trimStart();
  for (let match; (match = /^--([a-z][a-z-]*)(?:=(\S*))?(?:\s+|$)/.exec(rest)); rest = rest.slice(match[0].length)) {
    const [, name = '', value = 'true'] = match;
    flags.set(name, [...(flags.get(name) ?? []), value]);
  }
  return { flags, rest };
}
