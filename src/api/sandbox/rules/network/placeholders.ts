import { AtollError } from '../../../../base/error.ts';

/** Stands in a header value for something that is filled in when a request leaves: a secret, or an identity token. */
export type Placeholder = { kind: 'secret' | 'token'; name: string };

const begin = '${e2b.';
/** The form that the published clients use. A name may contain anything but braces and control characters. */
const form = /^\$\{e2b\.(?:(secrets)|identity\.tokens)\.([^{}\u0000-\u001f\u007f]{1,128})\}/;

/** The placeholders of a header value, in order. Throws `invalid` for a malformed one; `field` names the value. */
export function placeholdersIn(value: string, field: string): Placeholder[] {
  const found: Placeholder[] = [];
  replaceEach(value, field, placeholder => {
    found.push(placeholder);
    return '';
  });
  return found;
}

/** The value with each placeholder replaced by the answer of `valueOf`. */
export function replaceEach(value: string, field: string, valueOf: (placeholder: Placeholder) => string): string {
  let [result, rest] = ['', value];
  for (let at = rest.indexOf(begin); at >= 0; at = rest.indexOf(begin)) {
    const [whole, secrets, name = ''] = form.exec(rest.slice(at)) ?? [];
    if (whole === undefined) {
      throw new AtollError(
        'invalid',
        `${field}: holds a malformed placeholder: expected \${e2b.secrets.<name>} or \${e2b.identity.tokens.<name>}`,
      );
    }
    result += rest.slice(0, at) + valueOf({ kind: secrets === undefined ? 'token' : 'secret', name });
    rest = rest.slice(at + whole.length);
  }
  return result + rest;
}

/** Shown in place of a hidden text. */
const hidden = '***';

/** The value with its literal parts hidden; placeholders, which are only names, stay. */
export function hideLiterals(value: string): string {
  const between = '\0';
  const names: string[] = [];
  const literals = replaceEach(value, 'header', ({ kind, name }) => {
    names.push(`${begin}${kind === 'secret' ? 'secrets' : 'identity.tokens'}.${name}}`);
    return between;
  });
  return literals
    .split(between)
    .map((literal, index) => (literal === '' ? '' : hidden) + (names[index] ?? ''))
    .join('');
}
