import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Agent } from '../agent.ts';
import { json } from '../answer.ts';
import { fileError } from '../filesystem/errno.ts';
import { sniffedBytes, sniffType, typeByName } from './content-type.ts';
import { fileBody } from './file-body.ts';
import { gzip } from './gzip.ts';
import { negotiateCoding } from './negotiate.ts';
import { isModifiedMeanwhile, isRangeCurrent, isUnmodified, readRange } from './range.ts';
import { readFileRequest, unsuitable } from './request.ts';

/** `GET /files`: a file's bytes, whole or in part, as they are or compressed. */
export async function download(agent: Agent, request: Request, url: URL): Promise<Response> {
  const asked = readFileRequest(agent, request, url, 'read');
  const path = asked.resolve(asked.path);
  // Waiting for the other end of a pipe would be waiting for ever.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY).catch(error =>
    Promise.reject(fileError(error, path, { ELOOP: 'invalid', ENXIO: 'invalid' })),
  );
  try {
    return await answer(request, path, file);
  } catch (error) {
    await file.close();
    throw fileError(error, path);
  }
}

async function answer(request: Request, path: string, file: FileHandle): Promise<Response> {
  const facts = await file.stat();
  if (!facts.isFile()) throw unsuitable(path, facts.isDirectory() ? 'a directory' : 'not a regular file');
  const headers: Record<string, string> = {
    'content-disposition': `inline; filename=${dispositionName(basename(path))}`,
    'last-modified': new Date(facts.mtimeMs).toUTCString(),
    vary: 'Accept-Encoding',
  };
  const conditional = ['range', 'if-range', 'if-modified-since', 'if-unmodified-since', 'if-none-match', 'if-match'].some(name => request.headers.has(name));
  // Files of proc and sys say that they are empty, and are not.
  const size = facts.size > 0 || (await isEmpty(file)) ? facts.size : null;
  if (!conditional && size !== 0 && negotiateCoding(request.headers.get('accept-encoding')) === 'gzip') {
    headers['content-type'] = typeByName(path) ?? 'application/octet-stream';
    headers['content-encoding'] = 'gzip';
    return respond(request, 200, headers, file, () => gzip(fileBody(file, 0, size)));
  }
  headers['content-type'] = typeByName(path) ?? sniffType(await firstBytes(file));
  if (size === null) return respond(request, 200, headers, file, () => fileBody(file, 0, null));

  if (isModifiedMeanwhile(request, facts.mtimeMs)) return respond(request, 412, headers, file);
  if (isUnmodified(request, facts.mtimeMs)) return respond(request, 304, headers, file);
  headers['accept-ranges'] = 'bytes';
  const range = isRangeCurrent(request, facts.mtimeMs) ? readRange(request.headers.get('range'), size) : undefined;
  if (range === 'unsatisfiable') {
    await file.close();
    return json({ code: 416, message: `the range is not in the file of ${size} bytes` }, 416, { 'content-range': `bytes */${size}` });
  }
  const { start, end } = range ?? { start: 0, end: size };
  headers['content-length'] = String(end - start);
  if (range) headers['content-range'] = `bytes ${start}-${end - 1}/${size}`;
  return respond(request, range ? 206 : 200, headers, file, () => fileBody(file, start, end));
}

async function respond(request: Request, status: number, headers: Record<string, string>, file: FileHandle, body?: () => ReadableStream): Promise<Response> {
  if (body && request.method !== 'HEAD' && headers['content-length'] !== '0') return new Response(body(), { status, headers });
  await file.close();
  return new Response(null, { status, headers });
}

async function firstBytes(file: FileHandle): Promise<Uint8Array> {
  const { bytesRead, buffer } = await file.read(new Uint8Array(sniffedBytes), 0, sniffedBytes, 0);
  return buffer.subarray(0, bytesRead);
}

async function isEmpty(file: FileHandle): Promise<boolean> {
  return (await file.read(new Uint8Array(1), 0, 1, 0)).bytesRead === 0;
}

// RFC 6266: a token as it is, else quoted, and beyond ASCII percent-encoded.
function dispositionName(name: string): string {
  if (/^[\w!#$&+.^`|~-]+$/.test(name)) return name;
  if (/^[\x20-\x7e]*$/.test(name)) return `"${name.replace(/["\\]/g, '\\$&')}"`;
  return `"${name.replace(/[^\x20-\x7e]|["\\]/g, '_')}"; filename*=UTF-8''${encodeURIComponent(name)}`;
}
