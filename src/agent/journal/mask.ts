/** Replaces what is not written down. */
export const masked = '***';

/** Words in the name of a variable, flag or header that mark its value as secret. */
const secretWords =
  'passw(?:or)?d|passphrase|secret|token|(?:api|access|private)[-_]?key|credential|authorization|cookie|session[-_]?id';
const secretName = new RegExp(`${secretWords}|auth|(?:^|_)(?:key|pwd|pass|dsn)$`, 'i');
/** Shorter values would blank out half of every line, and are no secrets. */
const valueCharactersMin = 6;

const value = `(?:"[^"]{1,4096}"|'[^']{1,4096}'|[^\\s"'&;,|]{1,4096})`;
const patterns: [pattern: RegExp, replacement: string][] = [
  // `Authorization: Bearer …`, `X-Api-Key: …`, up to the end of the quoted header
  [
    /((?:authorization|cookie|x-[a-z-]{0,30}(?:key|token|secret))["']?\s{0,4}:\s{0,4}["']?)[^"'\n]{1,4096}/gi,
    `$1${masked}`,
  ],
  // `PASSWORD=…`, `"token": "…"`
  [new RegExp(`((?:${secretWords})[\\w-]{0,20}["']?\\s{0,4}[=:]\\s{0,4})${value}`, 'gi'), `$1${masked}`],
  // `--token …`
  [new RegExp(`(--?[\\w-]{0,20}(?:${secretWords})[\\w-]{0,20}\\s{1,4})${value}`, 'gi'), `$1${masked}`],
  // `curl -u name:password`
  [/(\s-u\s{0,4}["']?[^\s:"']{1,200}:)[^\s"']{1,1000}/g, `$1${masked}`],
  // `https://name:password@host`
  [/(\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@"']{0,200}:)[^\s/@"']{1,1000}@/gi, `$1${masked}@`],
  // Secrets of a known form: keys of well-known services and our own; JSON web tokens.
  [/\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,500}|\bgh[opsur]_[A-Za-z0-9]{16,255}|\bgithub_pat_\w{16,255}/g, masked],
  [/\bglpat-[\w-]{16,100}|\bxox[abprs]-[\w-]{10,255}|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,60}/g, masked],
  [/\be2b_[0-9a-f]{16,64}|\beyJ[\w-]{8,4096}\.eyJ[\w-]{8,4096}(?:\.[\w-]{0,4096})?/g, masked],
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]{0,8192}/g, masked],
];

/** Removes secrets from a text. */
type Mask = (text: string) => string;

/**
 * A mask for the values of variables in `environments` whose names mark them as secret, and for common forms of
 * secrets. It can't know any other secret.
 */
export function createMask(environments: readonly Record<string, string>[]): Mask {
  const values = new Set<string>();
  for (const environment of environments) {
    for (const [name, text] of Object.entries(environment))
      if (text.length >= valueCharactersMin && secretName.test(name)) values.add(text);
  }
  // The longest first: one value may contain another.
  const known = [...values].sort((a, b) => b.length - a.length);
  return text => {
    let result = text;
    for (const secret of known) if (result.includes(secret)) result = result.replaceAll(secret, masked);
    for (const [pattern, replacement] of patterns) result = result.replace(pattern, replacement);
    return result;
  };
}
