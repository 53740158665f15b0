import { boundedBytes } from '../api/bounded.ts';
import type { FileStore } from './store.ts';

/** Largest file that is shown or edited in the page. */
const shownBytesMax = 5 * 1024 ** 2;
/** Bytes shown of a file that is no text. */
const hexBytesMax = 4096;
const images = /\.(png|jpe?g|gif|webp|avif|bmp|ico)$/i;

/** How a file is shown. `changedAt`: when it had that content. */
export type Content = { changedAt: string | undefined } & (
  | { kind: 'text'; text: string }
  | { kind: 'image'; image: Blob }
  | { kind: 'bytes'; bytes: number; head: Uint8Array | null }
);

/** Reads as much of a file as is shown. Throws `ApiFailure`. */
export async function contentOf(store: FileStore, path: string): Promise<Content> {
  // Asked before the content, so that a change between the two is found when saving.
  const { changedAt, bytes: length } = await store.stat(path);
  if (length > shownBytesMax) return { kind: 'bytes', bytes: length, head: null, changedAt };
  // A kernel file has no length, and a file that is being written grows.
  const bytes = await boundedBytes(await store.read(path), shownBytesMax);
  if (!bytes) return { kind: 'bytes', bytes: Math.max(length, shownBytesMax), head: null, changedAt };
  if (images.test(path)) return { kind: 'image', image: new Blob([bytes]), changedAt };
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    if (!text.includes('\0')) return { kind: 'text', text, changedAt };
  } catch {
    // No text: shown as bytes.
  }
  return { kind: 'bytes', bytes: bytes.length, head: bytes.subarray(0, hexBytesMax), changedAt };
}

const perLine = 16;

/** Bytes as lines with their offset, their hexadecimal values, and their printable characters. */
export function hexLines(bytes: Uint8Array): string[] {
  return Array.from({ length: Math.ceil(bytes.length / perLine) }, (_, line) => {
    const part = Array.from(bytes.subarray(line * perLine, (line + 1) * perLine));
    const place = (line * perLine).toString(16).padStart(8, '0');
    const numbers = part.map(byte => byte.toString(16).padStart(2, '0')).join(' ');
    const printed = part.map(byte => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.')).join('');
    return `${place}  ${numbers.padEnd(perLine * 3 - 1)}  ${printed}`;
  });
}
