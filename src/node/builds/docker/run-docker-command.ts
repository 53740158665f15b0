import type { BuildState, DockerInstruction } from '../../../protocol/build.ts';
import { cachedLayer, type CachedWork, type CommandWork } from '../build.ts';
import type { Label } from '../label.ts';
import { runForLayer } from '../sandbox/run-for-layer.ts';
import { stateOf, type StageState } from './stage.ts';

type Run = DockerInstruction & { kind: 'run' };

/** Runs a RUN of a Dockerfile: in the stage's shell, or directly if it is an array of words. */
export function runDockerCommand(
  build: CachedWork & CommandWork,
  stage: StageState,
  run: Run,
  label: Label,
): Promise<BuildState> {
  const state = stateOf(stage);
  const argv = argvOf(stage, run);
  // The outcome may hold what a command has generated or fetched, such as keys, or found in a cache directory: so each
  // team has its own.
  const facts = [argv, stage.args, run.mounts, build.request.teamId, ...(run.network ? [run.network] : [])];
  return cachedLayer(build, state, { kind: 'docker-run', facts, label }, () =>
    runForLayer(
      build,
      state,
      {
        argv,
        shown: run.text.replace(/^RUN\s+(--[a-z]+(=\S+)?\s+)*/i, ''),
        user: stage.user,
        env: { ...stage.args, ...stage.env },
        cwd: stage.workdir || '/',
      },
      { mounts: run.mounts, ...(run.network === 'none' && { network: { internetAccess: false } }) },
    ),
  );
}

function argvOf({ shell }: StageState, { command, heredocs }: Run): [string, ...string[]] {
  if (typeof command !== 'string') return [command[0] ?? '', ...command.slice(1)];
  const script = heredocs.length > 0 && command.startsWith('#!');
  // A script that names its interpreter is written to a file.
  if (script)
    return [
      '/bin/sh',
      '-c',
      'file=$(mktemp) && printf %s "$1" >"$file" && chmod 700 "$file" && "$file"; status=$?; rm -f "$file"; exit ' +
        '$status',
      'script',
      command,
    ];
  const [program = '/bin/sh', ...args] = shell;
  return [program, ...args, command];
}
