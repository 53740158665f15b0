import { AtollError, messageOf } from '../../../base/error.ts';
import type { TemplateImage } from '../../../protocol/node.ts';
import { serverFailure } from '../../../protocol/template/server-failure.ts';
import { runInSandbox, type AgentProcess, type ProcessEnd } from '../../agent-client/process.ts';
import type { NetworkNamespace } from '../../native/netns.ts';
import { loginShell } from './login-shell.ts';

/** How a template's server is started and when it counts as ready. */
type StartCommands = {
  startCommand: string | undefined;
  readyCommand: string | undefined;
  user: string;
  /** Empty: the user's home directory. */
  workdir: string;
  env: Record<string, string>;
};

/** Runs a program in the sandbox. */
type Run = (
  process: AgentProcess,
  onOutput: (stream: 'stdout' | 'stderr', bytes: Uint8Array) => void,
) => Promise<ProcessEnd>;

/**
 * Longest time until the ready command must have succeeded: in a build, and in a create, whose caller waits for a
 * minute.
 */
export const readyTimeoutMs = { build: 10 * 60_000, create: 50_000 };
/** Longest time of one run of the ready command. */
const readyRunTimeoutMs = 60_000;
/** Pause between two runs of the ready command: short at first, because most servers are up at once. */
const readyPauseMs = { first: 20, max: 2_000 };
/** How long a build waits if there is a start command and nothing says when it is ready. */
export const waitMsWithoutReady = 20_000;

/**
 * Starts the template's server in a new sandbox and waits until it is ready, if the template says when that is.
 * Errors: `unavailable` if it fails or takes too long, as in protocol/template/server-failure.ts.
 */
export async function startTemplateServer(
  namespace: NetworkNamespace,
  image: TemplateImage,
  accessToken: string | null,
): Promise<void> {
  const { startCommand, readyCommand } = image;
  if (startCommand === undefined && readyCommand === undefined) return;
  const run: Run = (process, onOutput) =>
    runInSandbox(namespace, { ...process, ...(accessToken !== null && { accessToken }) }, onOutput);
  const commands = {
    startCommand,
    readyCommand,
    user: image.defaultUser,
    workdir: image.defaultWorkdir,
    env: image.buildEnv,
  };
  const connection = new AbortController();
  const running = Promise.withResolvers<void>();
  try {
    const started = launchStartCommand(run, commands, {
      signal: connection.signal,
      onStart: running.resolve,
      onOutput: () => {},
    });
    await (started && Promise.race([running.promise, started]));
    if (readyCommand !== undefined) await awaitReady(run, commands, { started, timeoutMs: readyTimeoutMs.create });
  } catch (error) {
    throw error instanceof AtollError ? serverFailure(error) : error;
  } finally {
    connection.abort();
  }
}

/**
 * Starts the start command in the background. Settles with how it ended, if it ever does; if the connection to it is
 * given up, it runs on.
 */
export function launchStartCommand(
  run: Run,
  { startCommand, user, workdir, env }: StartCommands,
  options: { signal?: AbortSignal; onStart?(): void; onOutput(stream: 'stdout' | 'stderr', bytes: Uint8Array): void },
): Promise<ProcessEnd> | undefined {
  if (startCommand === undefined) return undefined;
  const { signal, onStart, onOutput } = options;
  const process = {
    argv: loginShell(startCommand, env),
    user,
    env,
    cwd: workdir,
    timeoutMs: 0,
    ...(signal && { signal }),
    ...(onStart && { onStart }),
  };
  const started = run(process, onOutput);
  started.catch(() => {}); // callers that wait for readiness get the error
  return started;
}

/**
 * Waits until the ready command has succeeded; without one, until the start command had time to fail. Errors:
 * `unavailable` if the start command fails or the time is over.
 */
export async function awaitReady(
  run: Run,
  { startCommand, readyCommand, user, workdir, env }: StartCommands,
  options: { signal?: AbortSignal; started: Promise<ProcessEnd> | undefined; timeoutMs: number },
): Promise<void> {
  let failure: AtollError | undefined;
  const failed = new AbortController();
  void options.started?.then(
    end => {
      // A command that puts its server into the background and then ends is fine.
      if (end.exitCode === 0) return;
      failure = new AtollError('unavailable', `the start command failed: ${end.status}`);
      failed.abort();
    },
    error => {
      failure = new AtollError('unavailable', `the start command failed: ${messageOf(error)}`);
      failed.abort();
    },
  );
  const signal = AbortSignal.any([failed.signal, ...(options.signal ? [options.signal] : [])]);
  if (readyCommand === undefined) {
    if (startCommand !== undefined) await pause(waitMsWithoutReady, signal);
    options.signal?.throwIfAborted();
    if (failure) throw failure;
    return;
  }
  const deadline = performance.now() + options.timeoutMs;
  for (let waitMs = readyPauseMs.first; ; waitMs = Math.min(waitMs * 2, readyPauseMs.max)) {
    const end = await run(
      { argv: loginShell(readyCommand, env), user, env, cwd: workdir, timeoutMs: readyRunTimeoutMs, signal },
      () => {},
    ).catch((error: unknown) => {
      options.signal?.throwIfAborted();
      if (failure || !(error instanceof AtollError) || error.code !== 'deadline_exceeded') throw failure ?? error;
      return undefined;
    });
    if (failure) throw failure;
    if (end?.exitCode === 0) return;
    if (performance.now() > deadline)
      throw new AtollError(
        'unavailable',
        `the ready command has not succeeded within ${options.timeoutMs / 1000} s: ${readyCommand}`,
      );
    await pause(waitMs, signal);
    options.signal?.throwIfAborted();
    if (failure) throw failure;
  }
}

/** Waits, or less if the signal says so. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
