import { createCipheriv, createDecipheriv } from 'node:crypto';
import { inLentPieces } from '../pieces.ts';

/**
 * Authenticated encryption of streams: AES-256-GCM (NIST SP 800-38D), frame by frame. The nonce of a frame is its
 * number, so a key is for one stream. Which frame is the last is authenticated too: a stream that was cut short, or
 * whose frames changed places, fails before its end.
 */

const frameBytes = 1 << 20;
const tagBytes = 16;
const nonceBytes = 12;
const purpose = 'atoll frames 1';

/** Size of the encrypted stream of `bytes` bytes. */
export const sealedBytes = (bytes: number): number => bytes + tagBytes * Math.max(1, Math.ceil(bytes / frameBytes));

/** Encrypts a stream. `key`: 32 bytes, for this stream alone. */
export async function* sealFrames(key: Uint8Array, source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const { piece, number, isLast } of numbered(inLentPieces(source, frameBytes))) {
    const cipher = createCipheriv('aes-256-gcm', key, nonceOf(number)).setAAD(placeOf(isLast));
    yield cipher.update(piece);
    cipher.final(); // of a stream cipher, nothing
    yield cipher.getAuthTag();
  }
}

/**
 * Decrypts a stream. Throws where it was changed, cut short or encrypted with another key; what came before is
 * sound.
 */
export async function* openFrames(key: Uint8Array, source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const { piece, number, isLast } of numbered(inLentPieces(source, frameBytes + tagBytes))) {
    if (piece.length < tagBytes) throw new Error('the encrypted stream was cut short');
    const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(number))
      .setAAD(placeOf(isLast))
      .setAuthTag(piece.subarray(-tagBytes));
    const opened = decipher.update(piece.subarray(0, -tagBytes));
    decipher.final(); // throws where it was changed
    yield opened;
  }
}

async function* numbered(
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ piece: Uint8Array; number: number; isLast: boolean }> {
  let number = 0;
  let held: Uint8Array | undefined;
  for await (const piece of pieces) {
    if (held) yield { piece: held, number: number++, isLast: false };
    held = piece;
  }
  if (held) yield { piece: held, number, isLast: true };
}

function nonceOf(number: number): Buffer {
  const nonce = Buffer.alloc(nonceBytes);
  nonce.writeBigUInt64BE(BigInt(number), nonceBytes - 8);
  return nonce;
}

const placeOf = (isLast: boolean) => Buffer.from(`${purpose} ${isLast ? 'last' : 'more'}`);
