import { AtollError } from '../../base/error.ts';
import type { BuildState, DockerMount } from '../../protocol/build.ts';
import type { BuildContext } from './build-context.ts';
import { createLineSplitter } from './build-log.ts';
import { openBuildSandbox, type BuildSandbox } from './build-sandbox.ts';
import { openCacheMounts } from './cache-mounts.ts';
import { makeLayer } from './make-layer.ts';
import { platformFiles } from '../rootfs/platform-files.ts';

export const standardPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** Lines of output that a failure quotes. */
const quotedLines = 20;

export type BuildCommand = {
  argv: [string, ...string[]];
  /** As a failure names it. */
  shown: string;
  user: string;
  env: Record<string, string>;
  /** Empty: the user's home directory. */
  cwd: string;
};

/** Runs a command on top of `state` in a sandbox of its own and answers the layer of what it changed. */
export async function runForLayer(context: BuildContext, state: BuildState, command: BuildCommand, mounts: DockerMount[] = []): Promise<string | null> {
  const { node, request, limits, signal } = context;
  await using caches = await openCacheMounts(context, mounts);
  await using sandbox = await openBuildSandbox(node, { ...state, env: {}, user: 'root', resources: request.resources, driver: request.driver, authorities: context.authorities, network: context.network });
  if (sandbox.canBind) for (const { source, target } of caches.binds) await sandbox.bind(source, target);
  // A cache may be empty at any time: where it can't be shown, it is.
  const temporary = mounts.filter(mount => mount.kind === 'tmpfs' || !sandbox.canBind).map(mount => mount.target);
  if (temporary.length > 0) await runLogged(context, sandbox, { ...command, argv: ['mkdir', '-p', '--', ...temporary], user: 'root', cwd: '/' });
  await runLogged(context, sandbox, command);
  const { upper } = await sandbox.finish();
  const excluded = [...platformFiles, ...temporary.map(target => target.slice(1))];
  return await makeLayer(node, { job: { kind: 'seal', excluded, marked: true, limits }, upper, signal });
}

/** Runs a command in a sandbox and logs its output. Errors: `invalid` with the command and its last lines when it fails. */
async function runLogged(context: BuildContext, sandbox: BuildSandbox, command: BuildCommand): Promise<void> {
  const last: string[] = [];
  const lines = createLineSplitter(line => {
    context.log(line);
    last.push(line);
    if (last.length > quotedLines) last.shift();
  });
  const failed = (why: string) => new AtollError('invalid', [`failed to run command '${command.shown}': ${why}`, ...last].join('\n'));
  const timeoutMs = context.deadlineMs - Date.now();
  try {
    const { argv, user, env, cwd } = command;
    const end = await sandbox.run({ argv, user, env: withStandardPath(env), cwd, timeoutMs, signal: context.signal }, (stream, bytes) => lines.take(stream, bytes));
    lines.end();
    if (end.exitCode !== 0) throw failed(sandbox.outOfMemory() ? `${end.status} (out of memory: it may use ${context.request.resources.memoryMiB} MiB)` : end.status);
  } catch (error) {
    lines.end();
    context.signal.throwIfAborted();
    if (!(error instanceof AtollError) || error.message.startsWith('failed to run')) throw error;
    if (error.code === 'deadline_exceeded') throw failed('the time for the build is over');
    const name = error.code === 'invalid' ? 'invalid_argument' : error.code;
    throw failed(`command failed: ${name}: ${error.message}`);
  }
}

/** A PATH of the build's own may forget the system's directories. */
function withStandardPath(env: Record<string, string>): Record<string, string> {
  return env['PATH'] === undefined ? env : { ...env, PATH: `${env['PATH']}:${standardPath}` };
}


