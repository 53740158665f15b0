import { closeSync, constants, fstatSync, openSync, readlinkSync, realpathSync } from 'node:fs';
import { totalmem } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { AtollError, messageOf, statusOf, type ErrorCode } from '../../base/error.ts';
import type { BuilderAnswer, BuilderJob, BuilderQuestion, BuilderReply } from '../../protocol/builder.ts';
import { userIdOf } from '../../base/part-users.ts';
import type { Layout } from '../layout.ts';
import type { Helper } from '../native/helper.ts';
import { createBuilderGroups, type BuilderGroup } from './group.ts';

/** Of one job: one that takes more is ended, and with it the build that asked. */
const bounds = {
  /** Reading and writing a layer of the largest size. */
  layer: { memoryMiB: 2_048, cpuSeconds: 1_200, timeoutMs: 20 * 60_000 },
  /** Everything that is short. */
  small: { memoryMiB: 512, cpuSeconds: 10, timeoutMs: 30_000 },
  /** What waits for others. */
  transfer: { memoryMiB: 512, cpuSeconds: 600, timeoutMs: 60 * 60_000 },
};
/** Of what a builder says: a Dockerfile of the longest kind, read. */
const answerBytesMax = 8 << 20;
const complaintBytesMax = 2_048;
/** Hosts that one job asks for: of each request, those that it is redirected to included. */
const questionsMax = 200;
/** Of the machine's memory that all builders together may take. */
const memoryShare = 0.5;

export type BuilderTask = {
  job: BuilderJob;
  /** Directories, or files, of the helper's mount namespace that it is shown, by name. */
  shows?: Record<string, string>;
  /** The directory among those whose overlay marks it gets. */
  marksOf?: string;
  /** A file that it reads, and one that is made for it to write. */
  input?: string;
  output?: string;
  /** Answers what it asks. With it, it has the host's network. */
  reply?(question: BuilderQuestion): Promise<string[]>;
  signal?: AbortSignal;
};

/** Runs what reads strangers' bytes: each job in a process of its own, without rights, that ends with it. */
export type Builder = {
  /** What the job answers; its form is src/protocol/builder.ts's. Errors: those of the job; `invalid` where it took more than it may. */
  run<T>(task: BuilderTask): Promise<T>;
  /** Removes its control groups. */
  stop(): Promise<void>;
};

export type BuilderOptions = { helper: Pick<Helper, 'mountsPid'>; helperBinary: string; builderDir: string; layout: Layout };

export function createBuilder({ helper, helperBinary, builderDir, layout }: BuilderOptions): Builder {
  const groups = createBuilderGroups(`atoll${layout.installation}-builders`, Math.floor((totalmem() / 2 ** 20) * memoryShare));
  const removals = new Set<Promise<void>>();
  const uid = String(userIdOf('builder', layout.installation));

  const argvOf = ({ job, shows = {}, marksOf, reply }: BuilderTask, group: BuilderGroup): string[] => [
    ...[helperBinary, 'confine', String(helper.mountsPid), uid, String(boundsOf(job).cpuSeconds)],
    ...group.joinFiles.flatMap(path => ['-g', path]),
    ...Object.entries(shows).flatMap(([name, path]) => ['-s', name, path]),
    ...(marksOf === undefined ? [] : ['-x', marksOf]),
    ...(reply ? ['-n'] : []),
    ...['--', builderDir],
  ];

  const runInGroup = async (task: BuilderTask, group: BuilderGroup): Promise<BuilderAnswer> => {
    const { job, signal } = task;
    const { timeoutMs, memoryMiB } = boundsOf(job);
    const files = openFiles(task);
    const late = AbortSignal.timeout(timeoutMs);
    const child = (() => {
      try {
        return Bun.spawn(argvOf(task, group), {
          env: {},
          stdio: ['pipe', 'pipe', 'pipe', files.input ?? 'ignore', files.output ?? 'ignore'],
          killSignal: 'SIGKILL',
          signal: signal ? AbortSignal.any([signal, late]) : late,
        });
      } finally {
        files.close();
      }
    })();
    const send = async (said: BuilderJob | BuilderReply): Promise<void> => {
      try {
        child.stdin.write(`${JSON.stringify(said)}\n`);
        await child.stdin.flush();
      } catch {
        // It has ended: what it has said until then counts.
      }
    };
    void send(job);
    const [answer, complaint] = await Promise.all([converse(child.stdout, task, send), textOf(child.stderr), child.exited]);
    signal?.throwIfAborted();
    if (late.aborted) throw new AtollError('invalid', `reading it took longer than ${timeoutMs / 1000} s`);
    if (answer) return answer;
    if (group.wasOutOfMemory()) throw new AtollError('invalid', `reading it took more memory than ${memoryMiB} MiB`);
    if (child.signalCode !== null || (child.exitCode ?? 0) > 128) throw new AtollError('invalid', 'what should be read has ended its reader');
    throw new AtollError('internal', `a builder has ended without an answer: ${complaint.trim() || `status ${child.exitCode}`}`);
  };

  return {
    async run<T>(task: BuilderTask): Promise<T> {
      task.signal?.throwIfAborted();
      const group = groups.create(boundsOf(task.job).memoryMiB);
      try {
        const answer = await runInGroup(task, group);
        if ('ok' in answer) return answer.ok as T;
        const { code, message } = answer.error;
        throw new AtollError(Object.hasOwn(statusOf, code) ? (code as ErrorCode) : 'internal', String(message).slice(0, complaintBytesMax));
      } finally {
        const removal = group.remove().finally(() => removals.delete(removal));
        removals.add(removal);
      }
    },
    async stop() {
      await Promise.all(removals);
      await groups.remove();
    },
  };
}

function boundsOf({ kind }: BuilderJob) {
  if (kind === 'dockerfile' || kind === 'look') return bounds.small;
  return kind.startsWith('registry-') ? bounds.transfer : bounds.layer;
}

function openFiles({ input, output }: BuilderTask): { input?: number; output?: number; close(): void } {
  const read = input === undefined ? undefined : openInput(input);
  try {
    const written = output === undefined ? undefined : openSync(output, 'wx+', 0o600);
    const opened = [read, written].filter(fd => fd !== undefined);
    return { ...(read !== undefined && { input: read }), ...(written !== undefined && { output: written }), close: () => opened.forEach(fd => closeSync(fd)) };
  } catch (error) {
    if (read !== undefined) closeSync(read);
    throw error;
  }
}

/**
 * Opens a file that may be in a directory of another user's: neither it nor its directory may be a link, and nothing waits for it.
 * Errors: `invalid`.
 */
function openInput(path: string): number {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const directory = dirname(path);
  // Looked at once it is open: what was there before may have been exchanged.
  const meant = join(realpathSync(dirname(directory)), basename(directory), basename(path));
  if (fstatSync(fd).isFile() && readlinkSync(`/proc/self/fd/${fd}`) === meant) return fd;
  closeSync(fd);
  throw new AtollError('invalid', 'what should be read is not a file of its directory');
}

/** Hears a builder out: questions are replied to one after the other, and its last line is the answer. Undefined where there is none. */
async function converse(output: ReadableStream<Uint8Array>, task: BuilderTask, send: (reply: BuilderReply) => Promise<void>): Promise<BuilderAnswer | undefined> {
  let answer: BuilderAnswer | undefined;
  let questions = 0;
  for await (const line of linesOf(output)) {
    const said = JSON.parse(line) as BuilderAnswer | BuilderQuestion;
    if (!('resolve' in said)) answer = said;
    else if (!task.reply || ++questions > questionsMax) throw new AtollError('invalid', 'the reader asks for more than it may');
    else await send(await replyTo(task.reply, said));
  }
  return answer;
}

async function replyTo(reply: NonNullable<BuilderTask['reply']>, question: BuilderQuestion): Promise<BuilderReply> {
  try {
    return { addresses: await reply(question) };
  } catch (error) {
    return { error: { code: error instanceof AtollError ? error.code : 'internal', message: messageOf(error) } };
  }
}

/** Whole lines. Errors: `invalid` where all together are longer than an answer may be. */
async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let parts: Uint8Array[] = [];
  let length = 0;
  for await (const bytes of stream) {
    length += bytes.length;
    if (length > answerBytesMax) throw new AtollError('too_large', `what was read is longer than ${answerBytesMax} bytes`);
    let rest: Uint8Array = bytes;
    for (let end; (end = rest.indexOf(10)) >= 0; rest = rest.subarray(end + 1)) {
      yield Buffer.concat([...parts, rest.subarray(0, end)]).toString();
      parts = [];
    }
    if (rest.length > 0) parts.push(rest);
  }
}

async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = '';
  for await (const bytes of stream) if (text.length < complaintBytesMax) text += Buffer.from(bytes).toString();
  return text.slice(0, complaintBytesMax);
}
