import { AtollError, messageOf } from '../../../base/error.ts';
import type { BuildState } from '../../../protocol/build.ts';
import type { StartedImage } from '../../../protocol/node.ts';
import { originFile, originText } from '../../sandbox/start/origin.ts';
import {
  awaitReady,
  launchStartCommand,
  readyTimeoutMs,
  waitMsWithoutReady,
} from '../../sandbox/start/start-command.ts';
import { addFiles } from '../steps/add-files.ts';
import { cachedLayer, type Build } from '../build.ts';
import { lineOf, type Label } from '../label.ts';
import { logLines } from '../build-log.ts';
import type { BuildSandbox } from '../sandbox/build-sandbox.ts';

type Commands = { startCommand: string | undefined; readyCommand: string | undefined };

/**
 * Proves that sandboxes of the template will start: runs the start command in one and waits until the ready command
 * succeeds. Answers that sandbox with its memory, if this node can keep it; `state` contains nothing of it, so a
 * sandbox that can't begin with the memory runs the start command afresh.
 */
export async function tryStartCommand(
  build: Build,
  state: BuildState,
  commands: Commands,
): Promise<StartedImage | undefined> {
  const { startCommand, readyCommand } = commands;
  if (startCommand === undefined && readyCommand === undefined) return undefined;
  const label = { place: 'finalize', text: `starting: ${startCommand ?? '(no start command)'}` };
  // Sandboxes of the default driver begin with the memory that is kept.
  if (startCommand !== undefined && build.started.areKept(build.request.driver))
    return startAndKeep(build, state, { startCommand, readyCommand }, label);
  // The command has proved itself before on the same files.
  await cachedLayer(build, state, { kind: 'start', facts: [startCommand, readyCommand], label }, async () => {
    await runStartCommand(build, state, commands, async () => {});
    return null;
  });
  return undefined;
}

async function startAndKeep(
  build: Build,
  state: BuildState,
  commands: Commands & { startCommand: string },
  label: Label,
): Promise<StartedImage | undefined> {
  const { request } = build;
  const facts = { teamId: request.teamId, state, ...commands, resources: request.resources };
  const known = build.forced ? undefined : build.started.find(facts);
  if (known) {
    build.log(`CACHED ${lineOf(label)}`);
    return known;
  }
  build.log(lineOf(label));
  let started: StartedImage | undefined;
  await runStartCommand(build, state, commands, async sandbox => {
    try {
      started = await build.started.keep(sandbox, facts);
      build.log('[finalize] kept with its memory: sandboxes begin with it running');
    } catch (error) {
      build.log(`[finalize] sandboxes start it themselves: ${messageOf(error)}`, { level: 'warn' });
    }
  });
  return started;
}

/** `whenReady` gets the sandbox once all of it runs and nobody is connected to it. */
async function runStartCommand(
  build: Build,
  state: BuildState,
  { startCommand, readyCommand }: Commands,
  whenReady: (sandbox: BuildSandbox) => Promise<void>,
): Promise<void> {
  const { request, signal } = build;
  // Nothing of the build's but the files: sandboxes may begin with what runs then.
  await using sandbox = await build.openSandbox({
    ...state,
    env: {},
    resources: request.resources,
    driver: request.driver,
    authorities: undefined,
    network: build.network,
  });
  const connection = new AbortController();
  const lines = logLines(line => build.log(line));
  const commands = { startCommand, readyCommand, user: state.user, workdir: state.workdir, env: state.env };
  const started = launchStartCommand(sandbox.run, commands, {
    signal: AbortSignal.any([signal, connection.signal]),
    onOutput: (stream, bytes) => lines.take(stream, bytes),
  });
  try {
    const seconds = waitMsWithoutReady / 1000;
    build.log(
      readyCommand === undefined
        ? `[finalize] waiting ${seconds} s: no ready command says when the start command is ready`
        : `[finalize] waiting until ready: ${readyCommand}`,
    );
    await awaitReady(sandbox.run, commands, { signal, started, timeoutMs: readyTimeoutMs.build });
    connection.abort();
    await started?.catch(() => {});
    await whenReady(sandbox);
  } catch (error) {
    lines.end();
    signal.throwIfAborted();
    throw error instanceof AtollError ? new AtollError('invalid', [error.message, ...lines.last].join('\n')) : error;
  }
  lines.end();
}

/** Adds the file that says which build a sandbox comes from. `beside` names what else is kept with the files. */
export function recordOrigin(build: Build, state: BuildState, beside = ''): Promise<BuildState> {
  const content = Buffer.from(originText(build.request));
  return addFiles(build, state, {
    label: { place: 'finalize', text: `writing /.e2b${beside}` },
    files: [{ path: originFile, type: 'file', attributes: { mode: 0o644, uid: 0, gid: 0 }, content }],
  });
}
