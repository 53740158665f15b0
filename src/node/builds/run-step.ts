import { AtollError } from '../../base/error.ts';
import type { BuildState, BuildStep } from '../../protocol/build.ts';
import { loginShell } from '../sandbox/login-shell.ts';
import { cachedLayer, type BuildContext } from './build-context.ts';
import { shortened } from './label.ts';
import { lookInto } from './look-into.ts';
import { runForLayer, standardPath } from './run-command.ts';
import { copyLayer } from './steps/copy.ts';
import { applyEnv } from './steps/env.ts';
import { userLayer, userOf } from './steps/user.ts';
import { workdirLayer, workdirOf } from './steps/workdir.ts';

/** Carries out one step on top of `state` and answers the state after it. `place` is e.g. `2/5`. */
export async function runStep(context: BuildContext, state: BuildState, step: BuildStep, place: string): Promise<BuildState> {
  const type = step.type.toUpperCase();
  const label = `[builder ${place}] ${labelOf(type, step)}`;
  if (step.force) context.forced = true;
  switch (type) {
    case 'RUN': {
      const [command, user = ''] = step.args;
      if (command === undefined || command === '' || step.args.length > 2) throw new AtollError('invalid', 'RUN needs a command');
      return cachedLayer(context, state, { kind: 'run', facts: step.args, label }, () =>
        runForLayer(context, state, { argv: loginShell(command, state.env), shown: command, user: user || state.user, env: state.env, cwd: state.workdir }),
      );
    }
    case 'COPY':
      return cachedLayer(context, state, { kind: 'copy', facts: [step.args, step.filesHash], label }, () => copyLayer(context, state, step));
    case 'ENV':
      context.log(label);
      return { ...state, env: applyEnv(state.env, step.args, step.args.some(arg => arg.includes('$')) ? await shellVariables(context, state) : {}) };
    case 'USER': {
      const user = userOf(step);
      const after = await cachedLayer(context, state, { kind: 'user', facts: user, label }, () => userLayer(context, state, user));
      return { ...after, user: user.name };
    }
    case 'WORKDIR': {
      const workdir = workdirOf(state, step);
      const after = await cachedLayer(context, state, { kind: 'workdir', facts: workdir, label }, () => workdirLayer(context, state, workdir));
      return { ...after, workdir };
    }
    default:
      throw new AtollError('invalid', `${step.type} is not a step that a build knows; there are RUN, COPY, ENV, USER and WORKDIR`);
  }
}

function labelOf(type: string, { args }: BuildStep): string {
  return shortened(`${type} ${args.filter(arg => arg !== '').join(' ')}`);
}

/** What a login shell of the current user knows before the build sets anything. */
async function shellVariables(context: BuildContext, state: BuildState): Promise<Record<string, string>> {
  const { home } = (await lookInto(context, state, { user: state.user })).user;
  return { PATH: standardPath, HOME: home, USER: state.user, LOGNAME: state.user };
}
