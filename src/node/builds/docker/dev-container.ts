import { standardPath } from '../sandbox/run-for-layer.ts';
import { devContainerContext } from '../../../protocol/builder.ts';
import type { BuildState, BuildStep } from '../../../protocol/build.ts';
import type { NewTarEntry } from '../../../base/write-tar.ts';
import type { Build } from '../build.ts';
import type { PullOptions } from '../image/pull.ts';
import { openView } from '../../layers/view.ts';
import { addFiles } from '../steps/add-files.ts';
import { copyBetween } from './copy-between.ts';
import { runDockerfile } from './run-dockerfile.ts';

const prebuild = 'devcontainer build ';
const start = /^sudo devcontainer up (--workspace-folder .+?) && sudo \/prepare-exec\.sh /s;

/** Where the state keeps the programs and settings of a dev container; they come from templates/devcontainer. */
const runFolder = '/opt/devcontainer/run';
const programs = { 'usr/bin/devcontainer': 'devcontainer', 'prepare-exec.sh': 'prepare-exec' };

/** Makes the dev container that a step has planned: the state in which it is the sandbox's own system. */
export type BecomeDevContainer = (build: Build, state: BuildState) => Promise<BuildState>;

/** Whether a step is one that the SDKs' `betaDevContainerPrebuild` sends. */
export function plansDevContainer({ type, args }: BuildStep): boolean {
  return type.toUpperCase() === 'RUN' && args[0]?.startsWith(prebuild) === true;
}

/**
 * The step missing from a build whose start command is that of `betaSetDevContainerStart`; undefined for other builds.
 */
export function missingDevContainerStep(steps: BuildStep[], startCommand: string | undefined): BuildStep | undefined {
  const folder = startCommand === undefined ? undefined : start.exec(startCommand)?.[1];
  return folder === undefined || steps.some(plansDevContainer)
    ? undefined
    : { type: 'RUN', args: [`${prebuild}${folder}`, 'root'], force: false };
}

/**
 * Carries out plans that `devcontainer build` of templates/devcontainer leaves: the image of devcontainer.json becomes
 * the system, with the project's folder in it; nothing else of the state is taken over. Without a plan, the state
 * stays as it is.
 */
export function createDevContainers(options: PullOptions): BecomeDevContainer {
  return async (build, state) => {
    const plan = await planOf(build, state);
    if (!plan) return state;
    const { stages, workspace } = plan;
    const image = await runDockerfile(build, options, { stages, templates: { [devContainerContext]: state } });
    let made = image.state;
    for (const folder of [workspace, runFolder]) {
      const copy = {
        ...({ kind: 'copy', line: 0, text: `COPY ${folder}`, from: devContainerContext } as const),
        ...{ sources: [folder], destination: `${folder}/`, chown: '', chmod: '' },
      };
      made = await copyBetween(build, made, copy, state, { place: 'dev container', text: copy.text });
    }
    made = await addFiles(build, made, {
      label: { place: 'dev container', text: 'adding devcontainer and /prepare-exec.sh' },
      files: [settingsOf(image.state), ...links()],
    });
    // The start command uses sudo, as in the template.
    return { ...made, user: 'user', workdir: '' };
  };
}

async function planOf(build: Build, state: BuildState) {
  await using view = await openView(build, state.layers);
  return await build.builder.run({ job: { kind: 'dev-container' }, shows: { view: view.path }, signal: build.signal });
}

/** Variables that the image sets for its programs: sandboxes get a build's variables only if a file says so. */
function settingsOf({ env, user }: BuildState): NewTarEntry {
  const { PATH, ...others } = env;
  const lines = [
    `dockerfile_user=${quoted(user === 'user' ? '' : user)}`,
    `PATH=${quoted(PATH ?? standardPath)}:$PATH`,
    ...Object.entries(others).map(([name, value]) => `export ${name}=${quoted(value)}`),
  ];
  return {
    path: `${runFolder.slice(1)}/image.sh`,
    type: 'file',
    attributes: { mode: 0o755, uid: 0, gid: 0 },
    content: Buffer.from(`${lines.join('\n')}\n`),
  };
}

const links = (): NewTarEntry[] =>
  Object.entries(programs).map(([path, name]) => ({
    path,
    type: 'symlink',
    target: `${runFolder}/${name}`,
    attributes: { mode: 0o777, uid: 0, gid: 0 },
  }));

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
