import { AtollError, messageOf } from '../../base/error.ts';
import type { BuildState } from '../../protocol/build.ts';
import type { StartedImage } from '../../protocol/node.ts';
import { originFile, originText } from '../sandbox/origin.ts';
import { awaitReady, launchStartCommand, readyTimeoutMs } from '../sandbox/start-command.ts';
import { addFiles } from './add-files.ts';
import { cachedLayer, type BuildContext } from './build-context.ts';
import { createLineSplitter } from './build-log.ts';
import { openBuildSandbox, type BuildSandbox } from './build-sandbox.ts';
import { findStarted, keepStarted } from './start-memory.ts';

/** Lines of the start command's output that a failure quotes. */
const quotedLines = 20;

type Commands = { startCommand: string | undefined; readyCommand: string | undefined };

/**
 * Proves that sandboxes made from the template will start: runs the start command in one and waits until the ready command
 * says so. Answers that sandbox with its memory, where this node can keep it; `state` has nothing of it, so that a sandbox
 * that can't begin with the memory starts the command afresh.
 */
export async function tryStartCommand(context: BuildContext, state: BuildState, commands: Commands): Promise<StartedImage | undefined> {
  const { startCommand, readyCommand } = commands;
  if (startCommand === undefined && readyCommand === undefined) return undefined;
  const label = `[finalize] starting: ${startCommand ?? '(no start command)'}`;
  const { memory, drivers } = context.node;
  const driver = context.request.driver ?? drivers.defaultName;
  if (startCommand !== undefined && memory.kept && drivers.defaultName === 'crun' && driver === 'crun') return startAndKeep(context, state, { startCommand, readyCommand }, label);
  // On the same files it has proved itself before.
  await cachedLayer(context, state, { kind: 'start', facts: [startCommand, readyCommand], label }, async () => {
    await runStartCommand(context, state, commands, async () => {});
    return null;
  });
  return undefined;
}

async function startAndKeep(context: BuildContext, state: BuildState, commands: Commands & { startCommand: string }, label: string): Promise<StartedImage | undefined> {
  const { node, request } = context;
  const facts = { teamId: request.teamId, state, ...commands, resources: request.resources };
  const known = context.forced ? undefined : findStarted(node, facts);
  if (known) {
    context.log(`CACHED ${label}`);
    return known;
  }
  context.log(label);
  let started: StartedImage | undefined;
  await runStartCommand(context, state, commands, async sandbox => {
    try {
      started = await keepStarted(node, sandbox, facts);
      context.log('[finalize] kept with its memory: sandboxes begin with it running');
    } catch (error) {
      context.log(`[finalize] sandboxes start it themselves: ${messageOf(error)}`, { level: 'warn' });
    }
  });
  return started;
}

/** `whenReady` gets the sandbox with all of it running and nobody connected to it. */
async function runStartCommand(context: BuildContext, state: BuildState, { startCommand, readyCommand }: Commands, whenReady: (sandbox: BuildSandbox) => Promise<void>): Promise<void> {
  const { request, node, signal } = context;
  // Nothing of the build's but the files: what runs then may be what sandboxes begin with.
  await using sandbox = await openBuildSandbox(node, { ...state, env: {}, resources: request.resources, driver: request.driver, authorities: undefined, network: context.network });
  const connection = new AbortController();
  const last: string[] = [];
  const lines = createLineSplitter(line => {
    context.log(line);
    last.push(line);
    if (last.length > quotedLines) last.shift();
  });
  const commands = { startCommand, readyCommand, user: state.user, workdir: state.workdir, env: state.env };
  const started = launchStartCommand(sandbox.run, commands, { signal: AbortSignal.any([signal, connection.signal]), onOutput: (stream, bytes) => lines.take(stream, bytes) });
  try {
    context.log(`[finalize] waiting until ready: ${readyCommand ?? 'for a while'}`);
    await awaitReady(sandbox.run, commands, { signal, started, timeoutMs: readyTimeoutMs.build });
    connection.abort();
    await started?.catch(() => {});
    await whenReady(sandbox);
  } catch (error) {
    lines.end();
    signal.throwIfAborted();
    throw error instanceof AtollError ? new AtollError('invalid', [error.message, ...last].join('\n')) : error;
  }
  lines.end();
}

/** Adds the file that says which build a sandbox comes from. */
export function noteOrigin(context: BuildContext, state: BuildState): Promise<BuildState> {
  const content = Buffer.from(originText(context.request));
  return addFiles(context, state, { label: '[finalize] writing /.e2b', files: [{ path: originFile, type: 'file', attributes: { mode: 0o644, uid: 0, gid: 0 }, content }] });
}
