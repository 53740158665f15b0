/** Marks the last envelope of a stream. https://connectrpc.com/docs/protocol */
export const endFlag = 2;

const headBytes = 5;

/** A message as an envelope: a byte of flags, its length in four bytes, the message. */
export function joinEnvelope(json: string): Uint8Array<ArrayBuffer> {
  const payload = new TextEncoder().encode(json);
  const envelope = new Uint8Array(headBytes + payload.length);
  new DataView(envelope.buffer).setUint32(1, payload.length);
  envelope.set(payload, headBytes);
  return envelope;
}

/** The envelopes of a body, as they arrive. */
export async function* readEnvelopes(
  body: ReadableStream<Uint8Array> | null,
): AsyncGenerator<{ flag: number; json: unknown }> {
  if (!body) return;
  const reader = body.getReader();
  let parts: Uint8Array[] = [];
  let available = 0;
  let needed = headBytes;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      parts.push(value);
      available += value.length;
      // Joined only once an envelope is whole: a long one arrives in many parts.
      if (available < needed) continue;
      let all = joined(parts, available);
      while (all.length >= headBytes) {
        needed = headBytes + new DataView(all.buffer, all.byteOffset).getUint32(1);
        if (all.length < needed) break;
        const json: unknown = JSON.parse(new TextDecoder().decode(all.subarray(headBytes, needed)));
        yield { flag: all[0] ?? 0, json };
        all = all.subarray(needed);
        needed = headBytes;
      }
      parts = [all];
      available = all.length;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function joined(parts: Uint8Array[], length: number): Uint8Array {
  const [only] = parts;
  if (parts.length === 1 && only) return only;
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
