const settings = 0x04;
const goAway = 0x07;

/**
 * Whether the first bytes of a server are HTTP/2: the SETTINGS frame, which comes first (RFC 9113 3.4), or GOAWAY from
 * a server that has understood nothing. HTTP/1.1 responses begin with a letter, and no such frame is 64 KiB long.
 */
export function beginsHttp2(bytes: Uint8Array): boolean {
  const type = bytes[3];
  return bytes[0] === 0 && (type === undefined || type === settings || type === goAway);
}
