/**
 * The octets of HTTP/1.1, and tables that tell in one look-up where an octet is allowed (RFC 9110 5.5, 5.6.2; RFC 9112
 * 3).
 */

/** The octets that separate the parts of a message. */
export const octet = { tab: 9, lf: 10, cr: 13, space: 32, colon: 58, semicolon: 59 } as const;

/** The lower-case form of a token character, 0 for any other octet. */
export const tokenLower: Uint8Array = table(code => {
  const char = String.fromCharCode(code);
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]$/.test(char) ? char.toLowerCase().charCodeAt(0) : 0;
});

/** 1 for octets allowed in a field value: visible characters, space, tab, and 0x80–0xFF, which old software sends. */
export const isFieldValue: Uint8Array = table(code => (code === 9 || (code >= 32 && code !== 127) ? 1 : 0));

/**
 * 1 for octets allowed in a request target: no space and no control character. 0x80–0xFF pass: many clients send raw
 * UTF-8.
 */
export const isTarget: Uint8Array = table(code => (code > 32 && code !== 127 ? 1 : 0));

/** The value of a hexadecimal digit, 255 for any other octet. */
export const hexValue: Uint8Array = table(code => {
  const value = Number.parseInt(String.fromCharCode(code), 16);
  return Number.isNaN(value) ? 255 : value;
});

function table(valueOf: (code: number) => number): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, code) => valueOf(code));
}
