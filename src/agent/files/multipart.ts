import { AtollError } from '../../base/error.ts';

/** Limit of the header lines of one part. */
const headBytesMax = 16 << 10;

/** The names in a part's `Content-Disposition` (RFC 7578 4.2). */
type PartHead = { name: string | undefined; filename: string | undefined };

/** The events of a multipart body, in order: each part's head, its bytes in pieces, its end. */
type PartEvent = { kind: 'head'; head: PartHead } | { kind: 'bytes'; bytes: Uint8Array } | { kind: 'end' };

/** The boundary that a content type of `multipart/form-data` names. */
export function boundaryOf(contentType: string): string {
  const boundary = parameterOf(contentType, 'boundary');
  if (!boundary || boundary.length > 70)
    throw new AtollError('invalid', 'the content type multipart/form-data must name a boundary of 1 to 70 characters');
  return boundary;
}

/**
 * Reads a multipart body (RFC 7578) as it arrives, holding back at most the length of one boundary, so that parts can
 * be of any size. Ends only after the last boundary. Errors: `invalid` if the body is malformed.
 */
export async function* readParts(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  boundary: string,
): AsyncGenerator<PartEvent> {
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  // The first boundary begins the body: this acts as if a line had ended before it.
  let rest: Buffer = Buffer.from('\r\n');
  let state: 'preamble' | 'after-boundary' | 'bytes' | 'over' = 'preamble';

  for await (const chunk of body) {
    if (state === 'over') continue;
    rest =
      rest.length === 0 ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength) : Buffer.concat([rest, chunk]);
    for (let isMore = true; isMore;) {
      isMore = false;
      if (state === 'after-boundary') {
        const read = readHead(rest);
        if (read === undefined) break;
        rest = read === 'last' ? Buffer.alloc(0) : rest.subarray(read.length);
        if (read === 'last') state = 'over';
        else {
          state = 'bytes';
          isMore = true;
          yield { kind: 'head', head: read.head };
        }
      } else {
        const at = rest.indexOf(delimiter);
        // What may be the beginning of a boundary waits for the rest.
        const safe = at >= 0 ? at : Math.max(rest.length - delimiter.length + 1, 0);
        if (state === 'bytes' && safe > 0) yield { kind: 'bytes', bytes: rest.subarray(0, safe) };
        rest = rest.subarray(at >= 0 ? at + delimiter.length : safe);
        if (at < 0) break;
        if (state === 'bytes') yield { kind: 'end' };
        state = 'after-boundary';
        isMore = true;
      }
    }
  }
  if (state !== 'over') throw new AtollError('invalid', 'the multipart body ends before its last boundary');
}

/** The head after a boundary, once all of it is there; `last` after the closing boundary. */
function readHead(bytes: Buffer): { head: PartHead; length: number } | 'last' | undefined {
  if (bytes.length < 2) return undefined;
  if (bytes[0] === 0x2d && bytes[1] === 0x2d) return 'last';
  const lineStart = bytes.indexOf('\r\n');
  // Until its LF comes, a CR counts as padding.
  const padding = bytes.toString('latin1', 0, lineStart < 0 ? bytes.length - Number(bytes.at(-1) === 0x0d) : lineStart);
  if (!/^[ \t]*$/.test(padding)) throw new AtollError('invalid', 'the multipart body has a broken boundary');
  const end = bytes.indexOf('\r\n\r\n', Math.max(lineStart, 0));
  if (bytes.length > headBytesMax && (end < 0 || end > headBytesMax))
    throw new AtollError('invalid', `the head of a part is longer than ${headBytesMax} bytes`);
  if (lineStart < 0 || end < 0) return undefined;
  const lines = bytes
    .subarray(lineStart + 2, Math.max(end, lineStart + 2))
    .toString('utf8')
    .split('\r\n');
  const disposition = lines.find(line => /^content-disposition:/i.test(line))?.replace(/^[^:]*:/, '') ?? '';
  return { head: { name: parameterOf(disposition, 'name'), filename: filenameOf(disposition) }, length: end + 4 };
}

function filenameOf(disposition: string): string | undefined {
  // RFC 5987: the character set, a language that nobody needs, and the percent-encoded name.
  const [charset, , encoded] = parameterOf(disposition, 'filename\\*')?.split("'") ?? [];
  if (charset?.toLowerCase() !== 'utf-8' || encoded === undefined) return parameterOf(disposition, 'filename');
  try {
    return decodeURIComponent(encoded.trim());
  } catch {
    throw new AtollError('invalid', 'a part has a broken filename*');
  }
}

// A parameter as a token, or quoted with backslashes before quotes and backslashes.
function parameterOf(header: string, name: string): string | undefined {
  const [, quoted, token] = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^;\\s]*))`, 'i').exec(header) ?? [];
  return quoted === undefined ? token : quoted.replace(/\\(["\\])/g, '$1');
}
