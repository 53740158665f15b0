import { AtollError } from '../../base/error.ts';

/** How deep a body may nest; the deepest that clients send is 6. */
export const jsonDepthMax = 32;
/** Members and elements of a body, counted together. */
export const jsonValuesMax = 50_000;

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const open = new Set([0x5b, 0x7b]);
const close = new Set([0x5d, 0x7d]);

/**
 * Parses JSON after counting its depth and number of values in one walk over the text: the time for parsing and
 * checking depends on these, and not on the length alone. Throws `invalid`.
 */
export function parseBoundedJson(text: string): unknown {
  checkBounds(text);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new AtollError('invalid', 'request body: is not valid JSON');
  }
}

function checkBounds(text: string): void {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = endOfString(text, at + 1);
    else if (code === comma) values++;
    else if (open.has(code)) {
      depth++;
      values++;
    } else if (close.has(code)) depth--;
    if (depth > jsonDepthMax) throw new AtollError('invalid', `request body: nests deeper than ${jsonDepthMax}`);
    if (values > jsonValuesMax)
      throw new AtollError('invalid', `request body: has more than ${jsonValuesMax} members and elements`);
  }
}

/** The position of the quote that ends a string begun before `at`, or of the text's end. */
function endOfString(text: string, at: number): number {
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === backslash) at++;
    else if (code === quote) return at;
  }
  return at;
}
