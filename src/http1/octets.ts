/**
 * The octets that HTTP/1.1 is made of, and tables that say in one look-up what an octet may be (RFC 9110 5.5, 5.6.2;
 * RFC 9112 3).
 */

/** The octets that separate the parts of a message. */
export const octet = { tab: 9, lf: 10, cr: 13, space: 32, colon: 58, semicolon: 59 } as const;

/** The lower-case form of a token character, 0 for what is not one. */
export const tokenLower: Uint8Array = table(code => {
  const char = String.fromCharCode(code);
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]$/.test(char) ? char.toLowerCase().charCodeAt(0) : 0;
});

/** 1 for what a field value may hold: visible characters, space, tab, and 0x80–0xFF, which old software sends. */
export const isFieldValue: Uint8Array = table(code => (code === 9 || (code >= 32 && code !== 127) ? 1 : 0));

/** 1 for what a request target may hold: no space and no control. 0x80–0xFF pass: many clients send raw UTF-8. */
export const isTarget: Uint8Array = table(code => (code > 32 && code !== 127 ? 1 : 0));

/** The value of a hexadecimal digit, 255 for what is not one. */
export const hexValue: Uint8Array = table(code => {
  const value = Number.parseInt(String.fromCharCode(code), 16);
  return Number.isNaN(value) ? 255 : value;
});

function table(valueOf: (code: number) => number): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, code) => valueOf(code));
}
