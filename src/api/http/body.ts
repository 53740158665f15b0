import { AtollError } from '../../base/error.ts';

/** The longest request body, bytes. */
export const bodyBytesMax = 16 * 1024 * 1024;

/**
 * Reads a JSON body; undefined when there is none. The content type is not looked at: some clients send none.
 * Throws `too_large` without reading on, and `invalid` for what is no JSON.
 */
export async function readJson(request: Request): Promise<unknown> {
  const text = await readText(request);
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new AtollError('invalid', 'request body: is not valid JSON');
  }
}

async function readText(request: Request): Promise<string> {
  const length = request.headers.get('content-length');
  if (length !== null) {
    if (Number(length) > bodyBytesMax) throw tooLarge();
    return request.text();
  }
  if (!request.body) return '';
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.body) {
    bytes += chunk.byteLength;
    if (bytes > bodyBytesMax) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function tooLarge(): AtollError {
  return new AtollError('too_large', `request body: longer than ${bodyBytesMax} bytes (16 MiB)`);
}
