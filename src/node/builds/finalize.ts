import { AtollError } from '../../base/error.ts';
import type { BuildState } from '../../protocol/build.ts';
import { awaitReady, launchStartCommand, readyTimeoutMs } from '../sandbox/start-command.ts';
import { addFiles } from './add-files.ts';
import type { BuildContext } from './build-context.ts';
import { createLineSplitter } from './build-log.ts';
import { openBuildSandbox } from './build-sandbox.ts';

/** Lines of the start command's output that a failure quotes. */
const quotedLines = 20;

/**
 * Proves that sandboxes made from the template will start: runs the start command in one and waits until the ready command
 * says so. What they write is not kept: every sandbox starts them afresh.
 */
export async function tryStartCommand(
  context: BuildContext,
  state: BuildState,
  { startCommand, readyCommand }: { startCommand: string | undefined; readyCommand: string | undefined },
): Promise<void> {
  const { request, node, signal } = context;
  if (startCommand === undefined && readyCommand === undefined) return;
  await using sandbox = await openBuildSandbox(node, { ...state, resources: request.resources });
  const last: string[] = [];
  const lines = createLineSplitter(line => {
    context.log(line);
    last.push(line);
    if (last.length > quotedLines) last.shift();
  });
  const commands = { startCommand, readyCommand, user: state.user, workdir: state.workdir, env: state.env };
  if (startCommand !== undefined) context.log(`[finalize] starting: ${startCommand}`);
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
