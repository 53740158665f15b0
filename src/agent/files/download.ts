import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Agent } from '../agent.ts';
import { json } from '../answer.ts';
import { fileError } from '../filesystem/errno.ts';
import { sniffedBytes, sniffType, typeByName } from './content-type.ts';
import { closeUnread, readPieces, readWhole, streamFile } from './file-body.ts';
import { gzip, gzipLevel } from './gzip.ts';
import { negotiateCoding } from './negotiate.ts';
import { isModifiedMeanwhile, isRangeCurrent, isUnmodified, readRange, type Range } from './range.ts';
import { refuseOwn } from './own-file.ts';
import { readFileRequest, unsuitable } from './request.ts';
import { isWorthCompressing } from './worth-compressing.ts';

/** `GET /files`: a file's bytes, whole or in part, plain or compressed. */
export async function download(agent: Pick<Agent, 'settings'>, request: Request, url: URL): Promise<Response> {
  const asked = readFileRequest(agent, request, url, 'read');
  const path = asked.resolve(asked.path);
  // Waiting for the other end of a pipe could take for ever.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY).catch(error =>
    Promise.reject(fileError(error, path, { ELOOP: 'invalid', ENXIO: 'invalid' })),
  );
  try {
    refuseOwn(file, path);
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
  // Files of proc and sys claim to be empty, but are not.
  const isUnsized = facts.size === 0;
  const whole = isUnsized ? await readWhole(file, 0, Number.POSITIVE_INFINITY) : undefined;
  const size = isUnsized ? (whole?.length ?? Number.POSITIVE_INFINITY) : facts.size;
  const served: Served = { request, headers, file, size, whole };
  const isConditional = conditions.some(name => request.headers.has(name));
  // HEAD asks for the size, which is the file's: finding the compressed size would take compressing all of it.
  const mayCompress = request.method !== 'HEAD' && !isConditional && size > 0;
  if (mayCompress && (await shouldCompress(request, file, size))) {
    headers['content-type'] = typeByName(path) ?? 'application/octet-stream';
    return respondCompressed(served);
  }
  headers['content-type'] = typeByName(path) ?? sniffType(whole ?? (await firstBytes(file)));
  return respondRange(served, facts.mtimeMs);
}

/** Most clients accept gzip without knowing what the file is: if they also accept plain bytes, the file decides. */
async function shouldCompress(request: Request, file: FileHandle, size: number): Promise<boolean> {
  const coding = negotiateCoding(request.headers.get('accept-encoding'));
  if (coding.name !== 'gzip') return false;
  return !coding.mayBeIdentity || isWorthCompressing(file, size);
}

const conditions = ['range', 'if-range', 'if-modified-since', 'if-unmodified-since', 'if-none-match', 'if-match'];

/** The file to answer with. `size` is infinite if only reading tells it. */
type Served = {
  request: Request;
  headers: Record<string, string>;
  file: FileHandle;
  size: number;
  whole: Uint8Array<ArrayBuffer> | undefined;
};

async function respondCompressed({ request, headers, file, size, whole }: Served): Promise<Response> {
  headers['content-encoding'] = 'gzip';
  const bytes = whole ?? (await readWhole(file, 0, size));
  if (bytes) return finish(file, Bun.gzipSync(bytes, { level: gzipLevel }), { headers });
  return new Response(gzip(readPieces(file, { start: 0, end: size }, closeUnread(file, request))), { headers });
}

async function respondRange(served: Served, modifiedMs: number): Promise<Response> {
  const { request, headers, file, size } = served;
  if (isModifiedMeanwhile(request, modifiedMs)) return finish(file, null, { status: 412, headers });
  if (isUnmodified(request, modifiedMs)) return finish(file, null, { status: 304, headers });
  if (size === Number.POSITIVE_INFINITY) return respondBytes(served, { start: 0, end: size }, 200);
  headers['accept-ranges'] = 'bytes';
  const range = isRangeCurrent(request, modifiedMs) ? readRange(request.headers.get('range'), size) : undefined;
  if (range === 'unsatisfiable') {
    await file.close();
    return json({ code: 416, message: `the range is not in the file of ${size} bytes` }, 416, {
      'content-range': `bytes */${size}`,
    });
  }
  if (!range) return respondBytes(served, { start: 0, end: size }, 200);
  headers['content-range'] = `bytes ${range.start}-${range.end - 1}/${size}`;
  return respondBytes(served, range, 206);
}

async function respondBytes(
  { request, headers, file, whole }: Served,
  { start, end }: Range,
  status: number,
): Promise<Response> {
  if (request.method === 'HEAD') {
    if (end !== Number.POSITIVE_INFINITY) headers['content-length'] = String(end - start);
    return finish(file, null, { status, headers });
  }
  const bytes = whole?.subarray(start, end) ?? (await readWhole(file, start, end));
  return bytes
    ? finish(file, bytes, { status, headers })
    : new Response(streamFile(file, { start, end }, closeUnread(file, request)), { status, headers });
}

async function finish(file: FileHandle, body: Uint8Array<ArrayBuffer> | null, init: ResponseInit): Promise<Response> {
  await file.close();
  return new Response(body, init);
}

async function firstBytes(file: FileHandle): Promise<Uint8Array> {
  const { bytesRead, buffer } = await file.read(new Uint8Array(sniffedBytes), 0, sniffedBytes, 0);
  return buffer.subarray(0, bytesRead);
}

// RFC 6266: a token as it is, other text quoted, and percent-encoded beyond ASCII.
function dispositionName(name: string): string {
  if (/^[\w!#$&+.^`|~-]+$/.test(name)) return name;
  if (/^[\x20-\x7e]*$/.test(name)) return `"${name.replace(/["\\]/g, '\\$&')}"`;
  return `"${name.replace(/[^\x20-\x7e]|["\\]/g, '_')}"; filename*=UTF-8''${encodeURIComponent(name)}`;
}
