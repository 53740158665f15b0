import { AtollError } from '../../base/error.ts';
import { parseBoundedJson } from './bounded-json.ts';

/** The longest request bodies, bytes. A route names one where the usual one is not enough. */
export const bodyBytesMax = {
  usual: 2 ** 20,
  /** What strangers send is not counted before it is read, so it must be short. */
  strangers: 16_384,
  /** Two certificates and a token of Kubernetes. */
  joinCluster: 32_768,
  /** Environment and metadata may have 1.25 MiB, and escapes make their JSON longer. */
  createSandbox: 4 * 2 ** 20,
  /** A Dockerfile may have a million characters. */
  build: 8 * 2 ** 20,
} as const;

/** A body that was read: its JSON, undefined where there is none, and its length in bytes. */
type JsonBody = { value: unknown; bytes: number };

/**
 * Reads a JSON body. Ignores the content type, which some clients do not send. Throws `too_large` without reading on,
 * and `invalid` for anything but JSON or for too much of it.
 */
export async function readJson(request: Request, bytesMax: number): Promise<JsonBody> {
  const { text, bytes } = await readText(request, bytesMax);
  return { value: text.trim() === '' ? undefined : parseBoundedJson(text), bytes };
}

async function readText(request: Request, bytesMax: number): Promise<{ text: string; bytes: number }> {
  const length = request.headers.get('content-length');
  if (length !== null) {
    if (Number(length) > bytesMax) throw tooLarge(bytesMax);
    return { text: await request.text(), bytes: Number(length) };
  }
  if (!request.body) return { text: '', bytes: 0 };
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.body) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) throw tooLarge(bytesMax);
    chunks.push(chunk);
  }
  return { text: Buffer.concat(chunks).toString(), bytes };
}

function tooLarge(bytesMax: number): AtollError {
  return new AtollError('too_large', `request body: longer than ${bytesMax} bytes (${bytesMax / 1024} KiB)`);
}
