import { assert } from '../base/error.ts';
import { isFieldValue, tokenLower } from './octets.ts';

/** A header field: its name in any case, and its value as Latin-1 text. */
export type Field = { readonly name: string; readonly value: string };

/**
 * The bytes of a head: the start line, each field, and the empty line (RFC 9112 2.1). A line break in a value, a name
 * that is no token and a character beyond Latin-1 are broken invariants: whoever passes on strangers' text has checked
 * it.
 */
export function headBytes(startLine: string, fields: Iterable<Field>): Buffer {
  assert(isValue(startLine), 'the start line of a message holds a line end or a control character');
  const lines = [startLine];
  for (const { name, value } of fields) {
    assert(isToken(name), 'the name of a header is no token');
    assert(isValue(value), `the value of the header ${name} holds a line end or a control character`);
    lines.push(`${name}: ${value}`);
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

function isToken(text: string): boolean {
  return text !== '' && every(text, code => tokenLower[code] !== 0);
}

function isValue(text: string): boolean {
  return every(text, code => isFieldValue[code] === 1);
}

function every(text: string, holds: (code: number) => boolean): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code > 255 || !holds(code)) return false;
  }
  return true;
}
