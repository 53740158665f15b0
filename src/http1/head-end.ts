import { octet } from './octets.ts';

/**
 * Whether the bytes from `from` on can have completed or spoiled a head that began in `bytes`. Parsing the head again
 * for every piece that arrives would cost the square of its length, which a sender could exploit by sending it byte by
 * byte.
 */
export function headMayBeWhole(bytes: Buffer, from: number): boolean {
  for (let at = bytes.indexOf(octet.lf, from); at >= 0; at = bytes.indexOf(octet.lf, at + 1)) {
    if (at < 2 || bytes[at - 1] !== octet.cr || bytes[at - 2] === octet.lf) return true;
  }
  return false;
}
