import { startProgram, type ProgramEnd } from './child-process.ts';
import { AtollError } from '../error.ts';
import { advice } from './set-up.ts';

/** The first use of a feature makes the kernel load its modules, which takes a slow machine a while. */
const shortTimeoutMs = 60_000;
/** Lines of output that an error quotes. */
const quotedLines = 12;
/** A line longer than this is cut: a progress bar without line ends must not fill memory. */
const lineCharactersMax = 4096;
/** Characters of standard output that are kept: no command whose output is used writes nearly as much. */
const outputCharactersMax = 32 << 20;

/** `detail` of the error for a missing program. */
export const notInstalled = 'not_installed';

/** Bounds and surroundings of a command that `runCommand` runs. */
type CommandOptions = {
  /** A program, with its arguments, that runs the command, e.g. `nice`. */
  by?: readonly string[];
  cwd?: string;
  /** The whole environment; absent: this process's own. */
  env?: Record<string, string>;
  /** Called with every line that the command writes, to either stream. */
  onLine?: (line: string) => void;
  timeoutMs: number;
  signal?: AbortSignal | undefined;
};

/**
 * Runs a command to its end, without input, in its own process group, and answers its standard output. Errors:
 * `internal` with the last lines of output when it fails, `deadline_exceeded`, `canceled`, and `unavailable` when the
 * program is not installed. In each of these cases no process of its group is left.
 */
export async function runCommand(
  argv: [string, ...string[]],
  { by = [], onLine, ...rest }: CommandOptions,
): Promise<string> {
  const [name] = argv;
  const program = pathOf(name, `; ${advice.install}.`);
  rest.signal?.throwIfAborted();
  const { stdout, stderr, ended } = startProgram([...by, program, ...argv.slice(1)], {
    ...rest,
    input: 'ignore',
    ownGroup: true,
  });
  const tail: string[] = [];
  const output: string[] = [];
  const take = (line: string) => {
    tail.push(line);
    if (tail.length > quotedLines) tail.shift();
    onLine?.(line);
  };
  let characters = 0;
  const keep = (line: string) => {
    characters += line.length;
    if (characters <= outputCharactersMax) output.push(line);
    take(line);
  };
  const [, , end] = await Promise.all([readLines(stdout, keep), readLines(stderr, take), ended]);
  if (end.canceled) throw new AtollError('canceled', `${name} was stopped.`);
  if (end.timedOut)
    throw new AtollError(
      'deadline_exceeded',
      `${name} did not end within ${rest.timeoutMs / 1000} s.\n${tail.join('\n')}`,
    );
  if (end.exitCode !== 0) throw new AtollError('internal', `${name} failed (${statusOf(end)}):\n${tail.join('\n')}`);
  if (characters > outputCharactersMax)
    throw new AtollError('too_large', `${name} has printed more than ${outputCharactersMax} characters`);
  return output.join('\n');
}

/**
 * Runs a short command with a text as its input and answers its output, trimmed. Errors: `internal` with the first line
 * of its output when it fails, `deadline_exceeded`, and `unavailable` with the detail `notInstalled`.
 */
export async function tryCommand(argv: [string, ...string[]], input = ''): Promise<string> {
  const { stdout, stderr, ended } = startProgram([pathOf(argv[0]), ...argv.slice(1)], {
    input: Buffer.from(input),
    timeoutMs: shortTimeoutMs,
  });
  const [output, errors, end] = await Promise.all([new Response(stdout).text(), new Response(stderr).text(), ended]);
  if (end.timedOut)
    throw new AtollError('deadline_exceeded', `${argv[0]} did not end within ${shortTimeoutMs / 1000} s`);
  if (end.exitCode !== 0)
    throw new AtollError(
      'internal',
      (errors || output).trim().split('\n')[0] || `${argv[0]} ended with ${statusOf(end)}`,
    );
  return output.trim();
}

/** Runs a command as `tryCommand` does, in a network namespace that is gone afterwards. */
export async function tryInNetworkNamespace(argv: [string, ...string[]], input = ''): Promise<string> {
  pathOf(argv[0]); // otherwise unshare would report the missing program in its own words
  return tryCommand(['unshare', '--net', ...argv], input);
}

function pathOf(name: string, remedy = ''): string {
  const program = Bun.which(name);
  if (!program) throw new AtollError('unavailable', `${name} is not installed${remedy}`, { detail: notInstalled });
  return program;
}

function statusOf({ exitCode, signal }: ProgramEnd): string {
  return exitCode === null ? `${signal}` : `exit code ${exitCode}`;
}

async function readLines(stream: ReadableStream<Uint8Array>, onLine: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n|\r/);
    rest = (lines.pop() ?? '').slice(-lineCharactersMax);
    for (const line of lines) onLine(line);
  }
  if (rest !== '') onLine(rest);
}
