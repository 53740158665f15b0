import { AtollError, statusOf, type ErrorCode } from '../base/error.ts';
import { writeAll } from '../base/write-all.ts';
import type { BuilderJob, BuilderQuestion, BuilderReply } from '../protocol/builder.ts';

/** The builder's side of its dialogue with the node. */
export type Conversation = {
  job: BuilderJob;
  /** The node's answer for the addresses of a host. Errors: `forbidden`, `unavailable`. */
  resolve(question: BuilderQuestion['resolve']): Promise<string[]>;
};

/** Reads the job; replies arrive the same way, in the order of the questions. */
export async function openConversation(): Promise<Conversation> {
  const lines = linesOf(Bun.stdin.stream());
  const { value: first = '' } = await lines.next();
  let turn: Promise<unknown> = Promise.resolve();
  const ask = async (question: BuilderQuestion): Promise<BuilderReply> => {
    writeAll(1, Buffer.from(`${JSON.stringify(question)}\n`));
    const { value } = await lines.next();
    if (!value) throw new AtollError('canceled', 'nobody answers any more');
    return JSON.parse(value) as BuilderReply;
  };
  return {
    job: JSON.parse(first) as BuilderJob,
    async resolve(question) {
      const reply = turn.then(() => ask({ resolve: question }));
      turn = reply.catch(() => {});
      const answer = await reply;
      if ('addresses' in answer) return answer.addresses;
      throw new AtollError(
        Object.hasOwn(statusOf, answer.error.code) ? (answer.error.code as ErrorCode) : 'internal',
        answer.error.message,
      );
    },
  };
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  for await (const bytes of stream) {
    const pieces = decoder.decode(bytes, { stream: true }).split('\n');
    for (const piece of pieces.slice(0, -1)) {
      yield [...parts, piece].join('');
      parts = [];
    }
    parts.push(pieces.at(-1) ?? '');
  }
  return undefined;
}
