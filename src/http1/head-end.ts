import { octet } from './octets.ts';

/**
 * Whether what came from `from` on can have completed a head that began in `bytes`, or spoiled it. Parsing a head anew
 * for every piece that arrives would cost the square of its length, which whoever sends it byte by byte could use.
 */
export function headMayBeWhole(bytes: Buffer, from: number): boolean {
  for (let at = bytes.indexOf(octet.lf, from); at >= 0; at = bytes.indexOf(octet.lf, at + 1)) {
    if (at < 2 || bytes[at - 1] !== octet.cr || bytes[at - 2] === octet.lf) return true;
  }
  return false;
}
