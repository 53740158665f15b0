import { AtollError } from '../../../base/error.ts';
import type { BuildState, BuildStep } from '../../../protocol/build.ts';
import { loginShell } from '../../sandbox/start/login-shell.ts';
import { cachedLayer, type Build } from '../build.ts';
import { lineOf, shortened } from '../label.ts';
import { lookInto } from './look-into.ts';
import { runForLayer, standardPath } from '../sandbox/run-for-layer.ts';
import { copyLayer } from './copy.ts';
import { applyEnv } from './env.ts';
import { userLayer, userOf } from './user.ts';
import { workdirLayer, workdirOf } from './workdir.ts';

/** Carries out one step on top of `state` and answers the state after it. `place` is e.g. `2/5`. */
export async function runStep(build: Build, state: BuildState, step: BuildStep, place: string): Promise<BuildState> {
  const type = step.type.toUpperCase();
  const { teamId } = build.request;
  const label = { place: `builder ${place}`, text: textOf(type, step) };
  if (step.force) build.forced = true;
  switch (type) {
    case 'RUN': {
      const [command, user = ''] = step.args;
      if (command === undefined || command === '' || step.args.length > 2)
        throw new AtollError('invalid', 'RUN needs a command');
      // The outcome may hold what a command has generated or fetched, such as keys: so each team has its own.
      return cachedLayer(build, state, { kind: 'run', facts: [teamId, step.args], label }, () =>
        runForLayer(build, state, {
          argv: loginShell(command, state.env),
          shown: command,
          user: user || state.user,
          env: state.env,
          cwd: state.workdir,
        }),
      );
    }
    case 'COPY':
      // The hash is the team's own claim about its files: another team's files with the same hash may differ.
      return cachedLayer(build, state, { kind: 'copy', facts: [teamId, step.args, step.filesHash], label }, () =>
        copyLayer(build, state, step),
      );
    case 'ENV':
      build.log(lineOf(label));
      return {
        ...state,
        env: applyEnv(
          state.env,
          step.args,
          step.args.some(arg => arg.includes('$')) ? await shellVariables(build, state) : {},
        ),
      };
    case 'USER': {
      const user = userOf(step);
      const after = await cachedLayer(build, state, { kind: 'user', facts: user, label }, () =>
        userLayer(build, state, user),
      );
      return { ...after, user: user.name };
    }
    case 'WORKDIR': {
      const workdir = workdirOf(state, step);
      const after = await cachedLayer(build, state, { kind: 'workdir', facts: workdir, label }, () =>
        workdirLayer(build, state, workdir),
      );
      return { ...after, workdir };
    }
    default:
      throw new AtollError(
        'invalid',
        `${step.type} is not a step that a build knows; there are RUN, COPY, ENV, USER and WORKDIR`,
      );
  }
}

function textOf(type: string, { args }: BuildStep): string {
  return shortened(`${type} ${args.filter(arg => arg !== '').join(' ')}`);
}

/** The variables that a login shell of the current user has before the build sets any. */
async function shellVariables(build: Build, state: BuildState): Promise<Record<string, string>> {
  const { home } = (await lookInto(build, state, { user: state.user })).user;
  return { PATH: standardPath, HOME: home, USER: state.user, LOGNAME: state.user };
}
