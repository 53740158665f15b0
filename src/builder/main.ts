import { createReadStream, readSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { AtollError, messageOf } from '../base/error.ts';
import { writeAll } from '../base/write-all.ts';
import type { BuilderAnswer, BuilderJob } from '../protocol/builder.ts';
import { openConversation, type Conversation } from './conversation.ts';
import { readDevContainer } from './dockerfile/dev-container.ts';
import { parseDockerfile } from './dockerfile/parse.ts';
import { fileBlob, fileImage } from './image/image-file.ts';
import { registryBlob, registryImage } from './image/registry-image.ts';
import { runLayerJob } from './layer/layer-program.ts';
import { look } from './look.ts';

/** Descriptors of a builder's input and output. The node's tests use others. */
type Descriptors = { input: number; output: number };
const descriptors: Descriptors = { input: 3, output: 4 };

const readSize = 1 << 20;

/** Carries out the one job of this process, as src/protocol/builder.ts describes it. */
export async function runBuilder(): Promise<void> {
  const conversation = await openConversation();
  const answer = await answerOf(conversation.job, conversation);
  writeAll(1, Buffer.from(`${JSON.stringify(answer)}\n`));
}

async function answerOf(job: BuilderJob, conversation: Conversation): Promise<BuilderAnswer> {
  try {
    return { ok: await carryOut(job, conversation) };
  } catch (error) {
    return { error: { code: error instanceof AtollError ? error.code : 'internal', message: messageOf(error) } };
  }
}

async function carryOut(job: BuilderJob, conversation: Conversation): Promise<unknown> {
  switch (job.kind) {
    case 'dockerfile':
      return parseDockerfile(job.text);
    case 'look':
      return look(job);
    case 'dev-container':
      return readDevContainer();
    case 'digest':
      return digestOf(descriptors.input);
    case 'registry-image':
      return registryImage(job, conversation);
    case 'registry-blob':
      return registryBlob(job, conversation, descriptors.output);
    case 'file-image':
      return fileImage();
    case 'file-blob':
      return fileBlob(job, descriptors.output);
    default:
      return runLayerJob(job, {
        output: descriptors.output,
        input: () =>
          createReadStream('', { fd: descriptors.input, highWaterMark: readSize }) as AsyncIterable<Uint8Array>,
      });
  }
}

function digestOf(fd: number): string {
  const hash = createHash('sha256');
  const buffer = Buffer.alloc(readSize);
  for (let position = 0, count; (count = readSync(fd, buffer, 0, readSize, position)) > 0; position += count)
    hash.update(buffer.subarray(0, count));
  return `sha256:${hash.digest('hex')}`;
}
