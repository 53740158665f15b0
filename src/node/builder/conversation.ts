import { AtollError, messageOf } from '../../base/error.ts';
import type {
  BuilderAnswer,
  BuilderAnswers,
  BuilderJob,
  BuilderQuestion,
  BuilderReply,
} from '../../protocol/builder.ts';
import { builderSays } from '../../protocol/wire/builder-schemas.ts';
import { readerOf, Wrong, type Read } from '../../protocol/wire/read.ts';
import { parseJson } from '../../base/json-text.ts';

/** Hosts that one job asks for: one for each request, redirects included. */
const questionsMax = 200;

/** How a job is talked to. */
type Talk = {
  kind: BuilderJob['kind'];
  /** Bytes of everything that the builder sends. */
  saidBytesMax: number;
  /** Answers its questions; absent: it may ask none. */
  reply: ((question: BuilderQuestion) => Promise<string[]>) | undefined;
  send(reply: BuilderReply): Promise<void>;
};

/** Makes the readers of a builder's lines, each kind of job's once. */
export function createReaders(): (kind: keyof BuilderAnswers) => Read {
  const readers = new Map<keyof BuilderAnswers, Read>();
  return kind => {
    const reader = readers.get(kind) ?? readerOf(builderSays(kind));
    readers.set(kind, reader);
    return reader;
  };
}

/**
 * Hears a builder out: replies to questions one after the other; the last line is the answer. Undefined if the builder
 * ended without one. Errors: `invalid` for a line that no builder says in this job, `too_large` for too much output.
 */
export async function converse(
  output: ReadableStream<Uint8Array>,
  read: Read,
  { kind, saidBytesMax, reply, send }: Talk,
): Promise<BuilderAnswer | undefined> {
  let answer: BuilderAnswer | undefined;
  let questions = 0;
  for await (const line of linesOf(output, saidBytesMax)) {
    const said = readLine(line, kind, read);
    if (!('resolve' in said)) answer = said;
    else if (!reply || ++questions > questionsMax)
      throw new AtollError('invalid', 'the reader asks for more than it may');
    else await send(await replyTo(reply, said));
  }
  return answer;
}

/** Reads a line of the form that the schema describes, and nothing else. */
function readLine(line: string, kind: string, read: Read): BuilderAnswer | BuilderQuestion {
  const said = parseJson(line);
  if (said === undefined) throw new AtollError('invalid', `the reader (${kind}) has said what is not JSON`);
  const known = read(said);
  if (known instanceof Wrong)
    throw new AtollError(
      'invalid',
      `the reader (${kind}) has said what is no answer: ${known.path} must be ${known.mustBe}`,
    );
  return known as BuilderAnswer | BuilderQuestion;
}

async function replyTo(
  reply: (question: BuilderQuestion) => Promise<string[]>,
  question: BuilderQuestion,
): Promise<BuilderReply> {
  try {
    return { addresses: await reply(question) };
  } catch (error) {
    return { error: { code: error instanceof AtollError ? error.code : 'internal', message: messageOf(error) } };
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>, bytesMax: number): AsyncGenerator<string> {
  let parts: Uint8Array[] = [];
  let length = 0;
  for await (const bytes of stream) {
    length += bytes.length;
    if (length > bytesMax) throw new AtollError('too_large', `what was read is longer than ${bytesMax} bytes`);
    let rest: Uint8Array = bytes;
    for (let end; (end = rest.indexOf(10)) >= 0; rest = rest.subarray(end + 1)) {
      yield Buffer.concat([...parts, rest.subarray(0, end)]).toString();
      parts = [];
    }
    if (rest.length > 0) parts.push(rest);
  }
}
