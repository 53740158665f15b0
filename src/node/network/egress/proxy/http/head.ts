/** Octets of a request's or response's head. */
export const headBytesMax = 64 << 10;
export const fieldsMax = 200;

export type Field = { name: string; value: string };

export type Head = {
  /** The first line, without its end. */
  startLine: string;
  fields: Field[];
  /** Octets of the head with the empty line after it. */
  length: number;
};

const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** RFC 9110 5.5: visible octets, space and tab. */
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Reads the head of an HTTP/1 message (RFC 9112). Strict where leniency lets two parsers disagree: lines end with CRLF,
 * nothing is folded, no space before a colon, no control characters. Latin-1, so that every octet is kept.
 */
export function parseHead(bytes: Buffer): Head | 'incomplete' | 'invalid' {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return bytes.length > headBytesMax || bytes.includes('\n\n') ? 'invalid' : 'incomplete';
  if (end > headBytesMax) return 'invalid';
  const [startLine = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n');
  if (lines.length > fieldsMax || !fieldValue.test(startLine)) return 'invalid';
  const fields: Field[] = [];
  for (const line of lines) {
    const colon = line.indexOf(':');
    const field = { name: line.slice(0, Math.max(colon, 0)), value: line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '') };
    if (!fieldName.test(field.name) || !fieldValue.test(field.value)) return 'invalid';
    fields.push(field);
  }
  return { startLine, fields, length: end + 4 };
}

/** The values of all fields with the name (lower case). */
export function valuesOf(fields: Field[], name: string): string[] {
  return fields.filter(field => field.name.toLowerCase() === name).map(field => field.value);
}

/** The members of a comma-separated list over all its lines, in lower case. */
export function listOf(fields: Field[], name: string): string[] {
  return valuesOf(fields, name).flatMap(value => value.split(',')).map(member => member.trim().toLowerCase()).filter(Boolean);
}

export function writeHead(startLine: string, fields: Field[]): Buffer {
  return Buffer.from(`${startLine}\r\n${fields.map(({ name, value }) => `${name}: ${value}\r\n`).join('')}\r\n`, 'latin1');
}
