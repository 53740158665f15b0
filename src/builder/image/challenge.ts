/** A registry's request for credentials: a scheme and its parameters (RFC 9110, section 11.2). */
type Challenge = {
  /** In lower case; empty if there is none. */
  scheme: string;
  parameters: Map<string, string>;
};

/** Characters of the header that are read; the rest is ignored. */
const charactersMax = 4_096;

/**
 * Reads the first challenge of a `WWW-Authenticate` header, from left to right, up to the first text that is no
 * parameter.
 */
export function readChallenge(header: string): Challenge {
  const text = header.slice(0, charactersMax);
  const parameters = new Map<string, string>();
  let at = 0;
  const readWhile = (test: (character: string) => boolean): string => {
    const start = at;
    while (at < text.length && test(text[at] ?? '')) at++;
    return text.slice(start, at);
  };
  const isSeparator = (character: string) => character === ' ' || character === '\t' || character === ',';
  const readValue = (): string => {
    if (text[at] !== '"') return readWhile(character => !isSeparator(character));
    at++;
    const value = readWhile(character => character !== '"');
    at++;
    return value;
  };
  readWhile(isSeparator);
  const scheme = readWhile(isToken).toLowerCase();
  for (readWhile(isSeparator); at < text.length; readWhile(isSeparator)) {
    const name = readWhile(isToken).toLowerCase();
    if (name === '' || text[at] !== '=') break;
    at++;
    parameters.set(name, readValue());
  }
  return { scheme, parameters };
}

function isToken(character: string): boolean {
  return (
    (character >= 'a' && character <= 'z') ||
    (character >= 'A' && character <= 'Z') ||
    (character >= '0' && character <= '9') ||
    character === '_' ||
    character === '-'
  );
}
