import { AtollError } from '../../../base/error.ts';
import type { BuildState, DockerMount } from '../../../protocol/build.ts';
import type { EgressPolicy } from '../../../protocol/network/network.ts';
import type { CommandWork } from '../build.ts';
import { logLines } from '../build-log.ts';
import type { BuildSandbox } from './build-sandbox.ts';
import { openCacheMounts } from '../cache/cache-mounts.ts';
import { makeLayer } from '../../layers/make.ts';
import { platformFiles } from '../../layers/platform-files.ts';

/** Where every image has its programs, whatever its own PATH says. */
export const standardPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** A command of a step. */
type BuildCommand = {
  argv: [string, ...string[]];
  /** As a failure shows it. */
  shown: string;
  user: string;
  env: Record<string, string>;
  /** Empty: the user's home directory. */
  cwd: string;
};

/**
 * Runs a command on top of `state` in a sandbox of its own and answers the layer of its changes. `network`: that of
 * builds, unless given.
 */
export async function runForLayer(
  build: CommandWork,
  state: BuildState,
  command: BuildCommand,
  { mounts = [], network = build.network }: { mounts?: DockerMount[]; network?: EgressPolicy } = {},
): Promise<string | null> {
  const { request, limits, signal } = build;
  await using caches = await openCacheMounts(build, mounts);
  await using sandbox = await build.openSandbox({
    ...state,
    env: {},
    user: 'root',
    resources: request.resources,
    driver: request.driver,
    authorities: build.authorities,
    network,
  });
  if (sandbox.canBind) for (const { source, target } of caches.binds) await sandbox.bind(source, target);
  // A cache may be empty at any time: if it can't be shown, the command gets an empty directory.
  const temporary = mounts.filter(mount => mount.kind === 'tmpfs' || !sandbox.canBind).map(mount => mount.target);
  if (temporary.length > 0)
    await runLogged(build, sandbox, { ...command, argv: ['mkdir', '-p', '--', ...temporary], user: 'root', cwd: '/' });
  for (const mount of mounts)
    for (const argv of ownersOf(mount)) await runLogged(build, sandbox, { ...command, argv, user: 'root', cwd: '/' });
  await runLogged(build, sandbox, command);
  const { upper } = await sandbox.finish();
  const excluded = [...platformFiles, ...temporary.map(target => target.slice(1))];
  return await makeLayer(build, { job: { kind: 'pack', excluded, marked: true, limits }, upper, signal });
}

/** The commands that give a mount's directory the owner and mode that it should have. */
function ownersOf({ target, owner, mode }: DockerMount): [string, ...string[]][] {
  return [
    ...(owner ? [['chown', `${owner.uid}:${owner.gid}`, target] as [string, ...string[]]] : []),
    ...(mode !== undefined ? [['chmod', mode.toString(8), target] as [string, ...string[]]] : []),
  ];
}

/**
 * Runs a command in a sandbox and logs its output. Errors: `invalid` with the command and its last lines when it fails.
 */
async function runLogged(build: CommandWork, sandbox: BuildSandbox, command: BuildCommand): Promise<void> {
  const lines = logLines(line => build.log(line));
  const failed = (why: string) =>
    new AtollError('invalid', [`failed to run command '${command.shown}': ${why}`, ...lines.last].join('\n'));
  const { argv, user, env, cwd } = command;
  const process = {
    argv,
    user,
    env: withStandardPath(env),
    cwd,
    timeoutMs: build.deadlineMs - Date.now(),
    signal: build.signal,
  };
  const end = await sandbox
    .run(process, (stream, bytes) => lines.take(stream, bytes))
    .catch((error: unknown) => {
      lines.end();
      build.signal.throwIfAborted();
      throw error instanceof AtollError ? failed(reasonOf(error)) : error;
    });
  lines.end();
  if (end.exitCode === 0) return;
  const { memoryMiB } = build.request.resources;
  throw failed(sandbox.outOfMemory() ? `${end.status} (out of memory: it may use ${memoryMiB} MiB)` : end.status);
}

/** Why a command did not run to its end, for the log. */
function reasonOf({ code, message }: AtollError): string {
  if (code === 'deadline_exceeded') return 'the time for the build is over';
  return `command failed: ${code === 'invalid' ? 'invalid_argument' : code}: ${message}`;
}

/** A build may set a PATH without the system's directories: this adds them. */
function withStandardPath(env: Record<string, string>): Record<string, string> {
  return env['PATH'] === undefined ? env : { ...env, PATH: `${env['PATH']}:${standardPath}` };
}
