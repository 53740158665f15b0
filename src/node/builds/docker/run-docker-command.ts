import type { BuildState, DockerInstruction } from '../../../protocol/build.ts';
import { cachedLayer, type BuildContext } from '../build-context.ts';
import { runForLayer } from '../run-command.ts';
import { stateOf, type StageState } from './stage.ts';

type Run = DockerInstruction & { kind: 'run' };

/** Runs a RUN of a Dockerfile: by the stage's shell, or as the array of words that it is. */
export function runDockerCommand(context: BuildContext, stage: StageState, run: Run, label: string): Promise<BuildState> {
  const state = stateOf(stage);
  const argv = argvOf(stage, run);
  // What is in a cache directory is a part of the outcome, and each team's own: nobody gets a layer that another team's made.
  const caches = run.mounts.some(mount => mount.kind === 'cache') ? [context.request.teamId] : [];
  const facts = [argv, stage.args, run.mounts, ...caches];
  return cachedLayer(context, state, { kind: 'docker-run', facts, label }, () =>
    runForLayer(
      context,
      state,
      { argv, shown: run.text.replace(/^RUN\s+(--[a-z]+(=\S+)?\s+)*/i, ''), user: stage.user, env: { ...stage.args, ...stage.env }, cwd: stage.workdir || '/' },
      run.mounts,
    ),
  );
}

function argvOf({ shell }: StageState, { command, heredocs }: Run): [string, ...string[]] {
  if (typeof command !== 'string') return [command[0] ?? '', ...command.slice(1)];
  const script = heredocs.length > 0 && command.startsWith('#!');
  // A script that names its interpreter becomes a file of its own.
  if (script) return ['/bin/sh', '-c', 'file=$(mktemp) && printf %s "$1" >"$file" && chmod 700 "$file" && "$file"; status=$?; rm -f "$file"; exit $status', 'script', command];
  const [program = '/bin/sh', ...args] = shell;
  return [program, ...args, command];
}
