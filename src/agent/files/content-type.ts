import { extname } from 'node:path';

const unknown = 'application/octet-stream';

// First bytes that identify a format, for files whose names don't (the common ones of WHATWG MIME Sniffing).
const beginnings: [bytes: string, type: string][] = [
  ['%PDF-', 'application/pdf'],
  ['\x89PNG\r\n\x1a\n', 'image/png'],
  ['\xff\xd8\xff', 'image/jpeg'],
  ['GIF87a', 'image/gif'],
  ['GIF89a', 'image/gif'],
  ['PK\x03\x04', 'application/zip'],
  ['\x1f\x8b\x08', 'application/x-gzip'],
  ['<!DOCTYPE HTML', 'text/html; charset=utf-8'],
  ['<!doctype html', 'text/html; charset=utf-8'],
  ['<html', 'text/html; charset=utf-8'],
  ['<?xml', 'text/xml; charset=utf-8'],
];

/** Bytes of a file that `sniffType` looks at. */
export const sniffedBytes = 512;

/** The media type by the ending of a name, or undefined. */
export function typeByName(name: string): string | undefined {
  if (extname(name).length < 2) return undefined;
  const { type } = Bun.file(name);
  return type === unknown ? undefined : type.replace(/;charset=/, '; charset=');
}

/** The media type by the first bytes of a file. */
export function sniffType(bytes: Uint8Array): string {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, sniffedBytes)).toString('latin1');
  const known = beginnings.find(([beginning]) => start.startsWith(beginning));
  if (known) return known[1];
  // Control characters that no text contains.
  return /[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]/.test(start) ? unknown : 'text/plain; charset=utf-8';
}
