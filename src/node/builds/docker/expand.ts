/**
 * A word of a Dockerfile as Docker understands it: variables replaced (`$NAME`, `${NAME}`, `${NAME:-default}`,
 * `${NAME:+alternative}`), then quotes and escapes taken away. In single quotes nothing is replaced.
 */
export function expandWord(word: string, lookUp: (name: string) => string | undefined): string {
  let result = '';
  let quote = '';
  for (let index = 0; index < word.length; index++) {
    const character = word[index] ?? '';
    if (character === '\\' && quote !== "'") {
      const next = word[++index] ?? '\\';
      // In double quotes a backslash stands for itself before anything that it does not protect.
      result += quote === '"' && !'"$\\'.includes(next) ? `\\${next}` : next;
    } else if (quote === character) quote = '';
    else if (quote === '' && (character === '"' || character === "'")) quote = character;
    else if (character === '$' && quote !== "'") {
      const variable = variableAt(word, index, lookUp);
      result += variable.value;
      index += variable.length - 1;
    } else result += character;
  }
  return result;
}

/** Replaces variables alone: for text in which quotes mean nothing, as in a here-document. */
export function expandText(text: string, lookUp: (name: string) => string | undefined): string {
  return text.replace(/\\\$|\$(?:\w+|\{[^}]*\})/g, match => (match === '\\$' ? '$' : variableAt(match, 0, lookUp).value));
}

function variableAt(word: string, at: number, lookUp: (name: string) => string | undefined): { value: string; length: number } {
  const plain = /^\$([A-Za-z_]\w*)/.exec(word.slice(at));
  if (plain) return { value: lookUp(plain[1] ?? '') ?? '', length: plain[0].length };
  const braced = /^\$\{([A-Za-z_]\w*)(?:(:?[-+])([^}]*))?\}/.exec(word.slice(at));
  if (!braced) return { value: '$', length: 1 };
  const [whole, name = '', operator = '', other = ''] = braced;
  const value = lookUp(name);
  // With a colon, an empty value counts as none.
  const isSet = value !== undefined && (!operator.startsWith(':') || value !== '');
  const alternative = () => expandWord(other, lookUp);
  if (operator.endsWith('-')) return { value: isSet ? value : alternative(), length: whole.length };
  if (operator.endsWith('+')) return { value: isSet ? alternative() : '', length: whole.length };
  return { value: value ?? '', length: whole.length };
}
