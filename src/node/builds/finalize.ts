import { AtollError } from '../../base/error.ts';
import type { BuildState } from '../../protocol/build.ts';
import { awaitReady, launchStartCommand, readyTimeoutMs } from '../sandbox/start-command.ts';
import { addFiles } from './add-files.ts';
import { cachedLayer, type BuildContext } from './build-context.ts';
import { createLineSplitter } from './build-log.ts';
import { openBuildSandbox } from './build-sandbox.ts';

/** Lines of the start command's output that a failure quotes. */
const quotedLines = 20;

type Commands = { startCommand: string | undefined; readyCommand: string | undefined };

/**
 * Proves that sandboxes made from the template will start: runs the start command in one and waits until the ready command
 * says so. What they write is not kept: every sandbox starts them afresh.
 */
export async function tryStartCommand(context: BuildContext, state: BuildState, commands: Commands): Promise<void> {
  if (commands.startCommand === undefined && commands.readyCommand === undefined) return;
  // On the same files it has proved itself before.
  const label = `[finalize] starting: ${commands.startCommand ?? '(no start command)'}`;
  await cachedLayer(context, state, { kind: 'start', facts: [commands.startCommand, commands.readyCommand], label }, async () => {
    await runStartCommand(context, state, commands);
    return null;
  });
}

async function runStartCommand(context: BuildContext, state: BuildState, { startCommand, readyCommand }: Commands): Promise<void> {
  const { request, node, signal } = context;
  await using sandbox = await openBuildSandbox(node, { ...state, resources: request.resources, authorities: context.authorities, network: context.network });
  const last: string[] = [];
  const lines = createLineSplitter(line => {
    context.log(line);
    last.push(line);
    if (last.length > quotedLines) last.shift();
  });
  const commands = { startCommand, readyCommand, user: state.user, workdir: state.workdir, env: state.env };
  const started = launchStartCommand(sandbox.run, commands, { signal, onOutput: (stream, bytes) => lines.take(stream, bytes) });
  try {
    context.log(`[finalize] waiting until ready: ${readyCommand ?? 'for a while'}`);
    await awaitReady(sandbox.run, commands, { signal, started, timeoutMs: readyTimeoutMs.build });
  } catch (error) {
    lines.end();
    signal.throwIfAborted();
    throw error instanceof AtollError ? new AtollError('invalid', [error.message, ...last].join('\n')) : error;
  }
  lines.end();
}

/** Adds the file that says which build a sandbox comes from. */
export function noteOrigin(context: BuildContext, state: BuildState): Promise<BuildState> {
  const { buildId, templateId } = context.request;
  const content = Buffer.from(`ENV_ID=${templateId}\nTEMPLATE_ID=${templateId}\nBUILD_ID=${buildId}\n`);
  return addFiles(context, state, { label: '[finalize] writing /.e2b', files: [{ path: '.e2b', type: 'file', attributes: { mode: 0o644, uid: 0, gid: 0 }, content }] });
}
