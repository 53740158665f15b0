import { AtollError } from '../../base/error.ts';
import type { Agent } from '../agent.ts';
import { json } from '../answer.ts';
import { metadataOf, type Metadata } from '../filesystem/metadata.ts';
import { gunzip } from './gzip.ts';
import { boundaryOf, readParts } from './multipart.ts';
import { readFileRequest, type FileRequest } from './request.ts';
import { openWriter, type FileWriter, type WrittenFile } from './write-file.ts';

/** Files per request. */
const filesMax = 10_000;

type Upload = {
  agent: Pick<Agent, 'native' | 'journal'>;
  asked: FileRequest;
  metadata: Metadata;
  body: ReadableStream<Uint8Array<ArrayBuffer>>;
};

/** `POST /files`: writes one file from the body, or several from a form. Answers the written files. */
export async function upload(
  agent: Pick<Agent, 'settings' | 'native' | 'journal'>,
  request: Request,
  url: URL,
): Promise<Response> {
  const asked = readFileRequest(agent, request, url, 'write');
  const metadata = metadataOf(request.headers);
  const contentType = request.headers.get('content-type') ?? '';
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase();
  const into: Upload = { agent, asked, metadata, body: decoded(request) };
  if (type === 'application/octet-stream') return json([await writeBody(into)]);
  if (type === 'multipart/form-data') return json(await writeParts(into, boundaryOf(contentType)));
  throw new AtollError(
    'invalid',
    `content type '${type}' can't be uploaded: use application/octet-stream or multipart/form-data`,
  );
}

function decoded(request: Request): ReadableStream<Uint8Array<ArrayBuffer>> {
  const coding = (request.headers.get('content-encoding') ?? 'identity').trim().toLowerCase();
  const body = (request.body ?? new Blob([]).stream()) as ReadableStream<Uint8Array<ArrayBuffer>>;
  if (coding === 'identity' || coding === '') return body;
  if (coding === 'gzip' || coding === 'x-gzip') return gunzip(body);
  throw new AtollError('invalid', `content encoding '${coding}' can't be decoded: use gzip`);
}

async function writeBody({ agent, asked, metadata, body }: Upload): Promise<WrittenFile> {
  if (asked.path === '') throw new AtollError('invalid', 'the query must name a path');
  const writer = await openWriter(agent, asked.resolve(asked.path), asked.user, metadata);
  try {
    for await (const chunk of body) await writer.write(chunk);
  } catch (error) {
    await writer.abandon();
    throw error;
  }
  return writer.finish();
}

async function writeParts({ agent, asked, metadata, body }: Upload, boundary: string): Promise<WrittenFile[]> {
  const written: WrittenFile[] = [];
  const paths = new Set<string>();
  let writer: FileWriter | undefined;
  try {
    for await (const event of readParts(body, boundary)) {
      if (event.kind === 'bytes') await writer?.write(event.bytes);
      else if (event.kind === 'end') {
        const done = writer;
        writer = undefined;
        if (done) written.push(await done.finish());
      } else if (event.head.name === 'file') {
        const path = asked.resolve(asked.path || event.head.filename || noName());
        if (paths.has(path)) throw new AtollError('invalid', `two files of the request have the path '${path}'`);
        if (paths.add(path).size > filesMax)
          throw new AtollError('invalid', `the request has more than ${filesMax} files`);
        writer = await openWriter(agent, path, asked.user, metadata);
      }
    }
  } catch (error) {
    await writer?.abandon();
    throw error;
  }
  return written;
}

function noName(): never {
  throw new AtollError('invalid', 'a file needs a path: in the query, or as the filename of its part');
}
