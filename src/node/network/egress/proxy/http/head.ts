/** Octets of a request's or response's head: as much as other servers and clients take. */
export const headBytesMax = 16 << 10;
export const fieldsMax = 200;

export type Field = { name: string; value: string };

export type Head = {
  /** The first line, without its end. */
  startLine: string;
  fields: Field[];
  /** Octets of the head with the empty line after it. */
  length: number;
};

const headEnd = '\r\n\r\n';
const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** RFC 9110 5.5: visible octets, space and tab. */
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Reads the head of an HTTP/1 message (RFC 9112). Strict where leniency lets two parsers disagree: lines end with CRLF,
 * nothing is folded, no space before a colon, no control characters. Latin-1, so that every octet is kept.
 * `searched`: so many octets were found incomplete before, and are not gone through for its end again.
 */
export function parseHead(bytes: Buffer, searched = 0): Head | 'incomplete' | 'invalid' {
  const from = Math.max(searched - headEnd.length, 0);
  const end = bytes.indexOf(headEnd, from);
  if (end < 0) return bytes.length > headBytesMax || bytes.indexOf('\n\n', from) >= 0 ? 'invalid' : 'incomplete';
  if (end > headBytesMax) return 'invalid';
  const [startLine = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n');
  if (lines.length > fieldsMax || !fieldValue.test(startLine)) return 'invalid';
  const fields: Field[] = [];
  for (const line of lines) {
    const colon = line.indexOf(':');
    const field = { name: line.slice(0, Math.max(colon, 0)), value: withoutBlanks(line, colon + 1) };
    if (!fieldName.test(field.name) || !fieldValue.test(field.value)) return 'invalid';
    fields.push(field);
  }
  return { startLine, fields, length: end + 4 };
}

/** The line from an index on, without blanks around it. A regular expression for those at the end would begin at each blank. */
function withoutBlanks(line: string, from: number): string {
  let [start, end] = [from, line.length];
  while (start < end && isBlank(line, start)) start++;
  while (end > start && isBlank(line, end - 1)) end--;
  return line.slice(start, end);
}

function isBlank(line: string, at: number): boolean {
  return line[at] === ' ' || line[at] === '\t';
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
