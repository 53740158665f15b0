import { totalmem } from 'node:os';
import { startProgram } from '../../base/process/child-process.ts';
import { AtollError, statusOf, type ErrorCode } from '../../base/error.ts';
import { userIdOf } from '../../base/process/part-users.ts';
import type {
  BuilderAnswer,
  BuilderAnswers,
  BuilderJob,
  BuilderQuestion,
  BuilderReply,
} from '../../protocol/builder.ts';
import type { Helper } from '../native/helper.ts';
import { boundsOf } from './bounds.ts';
import { converse, createReaders } from './conversation.ts';
import { createBuilderGroups, type BuilderGroup } from './group.ts';
import { openJobFiles } from './job-files.ts';

/** Characters of a builder's complaint about its failure. */
const complaintCharactersMax = 2_048;
/** Share of the machine's memory that all builders together may take. */
const memoryShare = 0.5;
/** Exit statuses above this stand for the signal that ended a builder behind `confine`. */
const signalStatus = 128;

/** One job for a builder, with all that the builder may see. */
type BuilderTask<Job extends BuilderJob = BuilderJob> = {
  job: Job;
  /** Directories, or files, of the helper's mount namespace that the builder is shown, by name. */
  shows?: Record<string, string>;
  /** The directory among those whose overlay marks the builder gets. */
  marksOf?: string;
  /** A file that it reads, and one that is made for it to write. */
  input?: string;
  output?: string;
  /** Answers its questions. With it, the builder has the host's network. */
  reply?(question: BuilderQuestion): Promise<string[]>;
  signal?: AbortSignal;
  /** The team that it works for; see `builderFor`. */
  team?: string;
};

/** A builder whose jobs are all for one team, if that is known: together they take no more than a team may. */
export const builderFor = (builder: Pick<Builder, 'run'>, team: string | undefined): Pick<Builder, 'run'> => ({
  run: task => builder.run({ ...task, ...(team !== undefined && { team }) }),
});

/**
 * Runs the code that reads strangers' bytes: each job in a process of its own, without rights, which ends with the
 * job.
 */
export type Builder = {
  /**
   * Runs a job and answers its result, checked to have the form of the job's kind. Errors: those of the job; `invalid`
   * if it took more than it may or gave no valid answer.
   */
  run<Job extends BuilderJob>(task: BuilderTask<Job>): Promise<BuilderAnswers[Job['kind']]>;
  /** Removes its control groups. */
  stop(): Promise<void>;
};

/** Where a builder's programs are, and the installation that they belong to. */
type BuilderOptions = {
  helper: Pick<Helper, 'mountsPid'>;
  helperBinary: string;
  builderDir: string;
  /** Number of the installation. */
  installation: number;
};

/** Makes the builder of an installation. Removes control groups that a crash has left. */
export function createBuilder({ helper, helperBinary, builderDir, installation }: BuilderOptions): Builder {
  const groups = createBuilderGroups(`atoll${installation}-builders`, Math.floor((totalmem() / 2 ** 20) * memoryShare));
  const removals = new Set<Promise<void>>();
  const readerFor = createReaders();
  const uid = String(userIdOf('builder', installation));

  const start = (task: BuilderTask, group: BuilderGroup) => {
    using files = openJobFiles(task);
    const confine = [helperBinary, 'confine', String(helper.mountsPid), uid];
    return startProgram([...confine, ...confinementOf(task, group), '--', builderDir], {
      env: {},
      input: 'pipe',
      descriptors: [files.input ?? 'ignore', files.output ?? 'ignore'],
      timeoutMs: boundsOf(task.job).timeoutMs,
      signal: task.signal,
    });
  };

  const runInGroup = async (task: BuilderTask, group: BuilderGroup): Promise<BuilderAnswer> => {
    const { job, signal, reply } = task;
    const { timeoutMs, memoryMiB, saidBytesMax } = boundsOf(job);
    const { stdin, stdout, stderr, ended } = start(task, group);
    const send = async (said: BuilderJob | BuilderReply): Promise<void> => {
      try {
        void stdin.write(`${JSON.stringify(said)}\n`);
        await stdin.flush();
      } catch {
        // It has ended: what it said until then counts.
      }
    };
    void send(job);
    const [answer, complaint, end] = await Promise.all([
      converse(stdout, readerFor(job.kind), { kind: job.kind, saidBytesMax, reply, send }),
      textOf(stderr),
      ended,
    ]);
    signal?.throwIfAborted();
    if (end.timedOut) throw new AtollError('invalid', `reading it took longer than ${timeoutMs / 1000} s`);
    if (answer) return answer;
    if (group.wasOutOfMemory()) throw new AtollError('invalid', `reading it took more memory than ${memoryMiB} MiB`);
    if (end.exitCode === null || end.exitCode > signalStatus)
      throw new AtollError('invalid', 'what should be read has ended its reader');
    throw new AtollError(
      'internal',
      `a builder has ended without an answer: ${complaint.trim() || `status ${end.exitCode}`}`,
    );
  };

  return {
    async run(task) {
      task.signal?.throwIfAborted();
      const group = groups.create(boundsOf(task.job).memoryMiB, task.team);
      try {
        const answer = await runInGroup(task, group);
        // The reader has checked that the answer has the form of this kind of job.
        if ('ok' in answer) return answer.ok as BuilderAnswers[(typeof task)['job']['kind']];
        const { code, message } = answer.error;
        throw new AtollError(
          Object.hasOwn(statusOf, code) ? (code as ErrorCode) : 'internal',
          message.slice(0, complaintCharactersMax),
        );
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

/** What one job may take and see, as the arguments of `confine`. */
function confinementOf({ job, shows = {}, marksOf, reply }: BuilderTask, group: BuilderGroup): string[] {
  return [
    String(boundsOf(job).cpuSeconds),
    ...['-g', group.directories.join(' ')],
    ...Object.entries(shows).flatMap(([name, path]) => ['-s', name, path]),
    ...(marksOf === undefined ? [] : ['-x', marksOf]),
    ...(reply ? ['-n'] : []),
  ];
}

async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = '';
  for await (const bytes of stream) if (text.length < complaintCharactersMax) text += Buffer.from(bytes).toString();
  return text.slice(0, complaintCharactersMax);
}
