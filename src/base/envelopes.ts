import { AtollError } from './error.ts';

const messageBytesMax = 1 << 20;
/** One byte of flags, four of length. */
const prefixBytes = 5;

/** The flag of the message that ends a stream. */
export const endOfStream = 2;

/** A message as it is sent, without flags (connectrpc.com, "Enveloped messages"). */
export function envelopeOf(message: Uint8Array): Uint8Array {
  const envelope = Buffer.alloc(prefixBytes + message.length);
  envelope.writeUInt32BE(message.length, 1);
  envelope.set(message, prefixBytes);
  return envelope;
}

/**
 * Assembles messages from pieces. However small the pieces are, each byte is copied once. Errors: `internal` for a
 * message longer than any that our agents send.
 */
export function createMessageReader(onMessage: (flags: number, payload: Buffer) => void): (piece: Uint8Array) => void {
  const prefix = Buffer.alloc(prefixBytes);
  let prefixHas = 0;
  let payload: Buffer | undefined;
  let payloadHas = 0;
  return bytes => {
    for (let at = 0; at < bytes.length || payload?.length === payloadHas;) {
      if (!payload) {
        const piece = bytes.subarray(at, at + prefixBytes - prefixHas);
        prefix.set(piece, prefixHas);
        at += piece.length;
        prefixHas += piece.length;
        if (prefixHas < prefixBytes) return;
        if (prefix.readUInt32BE(1) > messageBytesMax)
          throw new AtollError('internal', 'the agent sent too long a message');
        payload = Buffer.alloc(prefix.readUInt32BE(1));
        payloadHas = 0;
      }
      const piece = bytes.subarray(at, at + payload.length - payloadHas);
      payload.set(piece, payloadHas);
      at += piece.length;
      payloadHas += piece.length;
      if (payloadHas < payload.length) return;
      const whole = payload;
      payload = undefined;
      prefixHas = 0;
      onMessage(prefix[0] ?? 0, whole);
    }
  };
}
