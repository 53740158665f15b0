import { AtollError } from '../base/error.ts';

/** The whole body of a request. Errors: `too_large` beyond `bytesMax` bytes. */
export async function readBounded(request: Request, bytesMax: number): Promise<Uint8Array> {
  const tooLarge = () => new AtollError('too_large', `the body is longer than ${bytesMax} bytes`);
  const announced = request.headers.get('content-length');
  if (announced !== null) {
    if (Number(announced) > bytesMax) throw tooLarge();
    return new Uint8Array(await request.arrayBuffer());
  }
  if (request.body === null) return new Uint8Array(0);
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of request.body) {
    length += part.length;
    if (length > bytesMax) throw tooLarge();
    parts.push(part);
  }
  return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
}
