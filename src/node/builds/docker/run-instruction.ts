import { platformArgs } from '../../../base/dockerfile/platform-args.ts';
import { AtollError } from '../../../base/error.ts';
import { joinPath, withoutSlash } from '../../../base/join-path.ts';
import type { BuildState, DockerInstruction } from '../../../protocol/build.ts';
import { cachedLayer, type Build } from '../build.ts';
import { workdirLayer } from '../steps/workdir.ts';
import { copyBetween, writeInline } from './copy-between.ts';
import { boundedEnvironment, valueOf } from '../environment.ts';
import { lineOf, type Label } from '../label.ts';
import { expandWord, expandWords } from '../../../base/dockerfile/expand.ts';
import { runDockerCommand } from './run-docker-command.ts';
import { stateOf, type StageState } from './stage.ts';

/** What a stage can see of the others. */
export type Stages = {
  globalArgs: Record<string, string>;
  /** The state that a COPY takes files from: that of an earlier stage, or of an image. */
  stateOf(name: string): Promise<BuildState>;
};

/** Carries out one instruction and answers the stage after it. */
export async function runInstruction(
  build: Build,
  stage: StageState,
  instruction: DockerInstruction,
  stages: Stages,
  label: Label,
): Promise<StageState> {
  // A value of ENV takes precedence over an ARG of the same name.
  const lookUp = (name: string) => valueOf(stage.env, name) ?? valueOf(stage.args, name);
  const expand = (word: string) => expandWord(word, lookUp);
  switch (instruction.kind) {
    case 'arg': {
      const { name, value } = instruction;
      const known = value === null ? (valueOf(stages.globalArgs, name) ?? valueOf(platformArgs, name)) : expand(value);
      return known === undefined ? stage : { ...stage, args: boundedEnvironment({ ...stage.args, [name]: known }) };
    }
    case 'env': {
      build.log(lineOf(label));
      // All values of one instruction see the environment from before it.
      return {
        ...stage,
        env: boundedEnvironment({
          ...stage.env,
          ...Object.fromEntries(pairsOf(expandWords(instruction.pairs.flat(), lookUp))),
        }),
      };
    }
    case 'run':
      return { ...stage, ...(await runDockerCommand(build, stage, instruction, label)) };
    case 'copy': {
      const copy = expandCopy(instruction, lookUp);
      const from = await stages.stateOf(expand(instruction.from));
      return { ...stage, ...(await copyBetween(build, stateOf(stage), copy, from, label)) };
    }
    case 'write':
      return {
        ...stage,
        ...(await writeInline(
          build,
          stateOf(stage),
          { ...instruction, destination: expand(instruction.destination), chown: expand(instruction.chown) },
          lookUp,
          label,
        )),
      };
    case 'workdir': {
      const workdir = withoutSlash(joinPath(stage.workdir || '/', expand(instruction.path)));
      const state = stateOf(stage);
      const after = await cachedLayer(build, state, { kind: 'workdir', facts: workdir, label }, () =>
        workdirLayer(build, state, workdir),
      );
      return { ...stage, ...after, workdir, saysWorkdir: true };
    }
    case 'user':
      build.log(lineOf(label));
      return { ...stage, user: expand(instruction.name).split(':')[0] ?? 'root', saysUser: true };
    case 'shell':
      return { ...stage, shell: instruction.argv };
    case 'entrypoint':
      return { ...stage, entrypoint: instruction.command, cmd: stage.saysCmd ? stage.cmd : '' };
    case 'cmd':
      return { ...stage, cmd: instruction.command, saysCmd: true };
  }
}

/** Every two words: a name and its value. */
function pairsOf(words: string[]): [string, string][] {
  return words.flatMap((name, index) => (index % 2 === 0 ? [[name, words[index + 1] ?? '']] : []));
}

type CopyInstruction = Extract<DockerInstruction, { kind: 'copy' }>;

/** Replaces the variables of a COPY. Errors: `invalid` if it copies from nowhere, or from above its root. */
function expandCopy(instruction: CopyInstruction, lookUp: (name: string) => string | undefined): CopyInstruction {
  if (instruction.from === '') {
    throw new AtollError(
      'invalid',
      `line ${instruction.line}: there are no files to copy: they are not sent with the Dockerfile. ` +
        'Use COPY --from, a here-document, or build with the SDK or the command line, which upload them',
    );
  }
  const copy = {
    ...instruction,
    sources: expandWords(instruction.sources, lookUp),
    destination: expandWord(instruction.destination, lookUp),
    chown: expandWord(instruction.chown, lookUp),
  };
  // Checked here and not while parsing: a variable can stand for the dots.
  const upwards = copy.sources.find(source => source.split('/').includes('..'));
  if (upwards !== undefined)
    throw new AtollError(
      'invalid',
      `line ${instruction.line}: ${upwards.slice(0, 200)} leads upwards: a source must not have ..`,
    );
  return copy;
}
