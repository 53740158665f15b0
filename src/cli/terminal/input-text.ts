import { AtollError } from '../../base/error.ts';
import type { Input } from './command.ts';

/** No secret is longer. */
const bytesMax = 1 << 20;

/** All of the piped input; of typed input, one line. Fails with `too_large`. */
export async function readAll(input: Input | undefined): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of input?.chunks() ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > bytesMax) throw new AtollError('too_large', `The input is longer than ${bytesMax >> 20} MiB.`);
    if (input?.isTerminal && chunk.includes(10)) break;
  }
  return Buffer.concat(chunks).toString();
}
