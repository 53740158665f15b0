import { platformArgs } from '../../../base/dockerfile/platform-args.ts';
import type { BuildState, DockerStage } from '../../../protocol/build.ts';
import { cachedLayer, type Build } from '../build.ts';
import { shortened } from '../label.ts';
import { flattenWhereDeep } from '../steps/flatten.ts';
import { pullImage, type PullOptions } from '../image/pull.ts';
import { makeLayer } from '../../layers/make.ts';
import { provision } from '../provision.ts';
import { userLayer } from '../steps/user.ts';
import { valueOf } from '../environment.ts';
import { expandWord } from '../../../base/dockerfile/expand.ts';
import { runInstruction, type Stages } from './run-instruction.ts';
import { findStage, neededStages, newStage, stateOf, type StageState } from './stage.ts';
import { startCommandOf } from './start-command.ts';

/** A parsed Dockerfile, and the templates that stand in for images of these names. */
type DockerSource = { stages: DockerStage[]; templates: Record<string, BuildState> };

/**
 * Carries out the stages of a Dockerfile that the last one needs. Sandboxes run as `user` in its home unless the file
 * says otherwise; its ENTRYPOINT and CMD are the start command.
 */
export async function runDockerfile(
  build: Build,
  options: PullOptions,
  { stages, templates }: DockerSource,
): Promise<{ state: BuildState; startCommand?: string }> {
  const nameOf = (stage: DockerStage) =>
    expandWord(stage.from, name => valueOf(stage.globalArgs, name) ?? valueOf(platformArgs, name));
  const done = new Map<number, StageState>();
  const last = stages.length - 1;
  const base = baseStages(stages, nameOf);
  const images = new Map<string, Promise<BuildState>>();
  const imageState = (reference: string): Promise<BuildState> => {
    const template = valueOf(templates, reference);
    if (template) return Promise.resolve(template);
    const known =
      images.get(reference) ??
      (reference === 'scratch' ? emptyState(build) : pullImage(build, options, reference, undefined));
    images.set(reference, known);
    return known;
  };

  for (const index of neededStages(stages, nameOf)) {
    const stage = stages[index];
    if (!stage) continue;
    const from = nameOf(stage);
    const before = done.get(findStage(stages, index, from));
    // Provisions the base image before the steps, so that changes to the steps do not undo the cache of that.
    const image = before ? undefined : await imageState(from);
    const begin =
      before ??
      newStage(
        image && base.has(index) && !valueOf(templates, from)
          ? await provision(build, image)
          : (image ?? (await emptyState(build))),
      );
    let state: StageState = { ...begin, args: {}, saysCmd: false };
    const others: Stages = {
      globalArgs: stage.globalArgs,
      stateOf: async name => {
        const other = done.get(findStage(stages, index, name));
        return other ? stateOf(other) : imageState(name);
      },
    };
    for (const [number, instruction] of stage.instructions.entries()) {
      build.signal.throwIfAborted();
      // Some instructions never wait, so this lets other work run between any two.
      await Bun.sleep(0);
      const label = {
        place:
          `${stage.name ?? (index === last ? 'builder' : `stage ${index}`)} ` +
          `${number + 1}/${stage.instructions.length}`,
        text: shortened(instruction.text),
      };
      state = { ...(await runInstruction(build, state, instruction, others, label)) };
      state = { ...state, layers: (await flattenWhereDeep(build, stateOf(state))).layers };
    }
    done.set(index, state);
  }
  return finish(build, done.get(last) ?? newStage(await emptyState(build)));
}

/** The stages that the last one is made on top of, itself included. */
function baseStages(stages: DockerStage[], nameOf: (stage: DockerStage) => string): Set<number> {
  const base = new Set<number>();
  for (let index = stages.length - 1; index >= 0;) {
    base.add(index);
    const stage = stages[index];
    index = stage ? findStage(stages, index, nameOf(stage)) : -1;
  }
  return base;
}

async function emptyState(build: Build): Promise<BuildState> {
  const { limits, signal } = build;
  const nothing: BuildState = { layers: [], env: {}, user: 'root', workdir: '' };
  return cachedLayer(
    build,
    nothing,
    { kind: 'scratch', facts: null, label: { place: 'base', text: 'FROM scratch' } },
    () => makeLayer(build, { job: { kind: 'import', limits }, signal }),
  );
}

async function finish(build: Build, stage: StageState): Promise<{ state: BuildState; startCommand?: string }> {
  const user = { name: 'user', admin: true };
  const withUser = await cachedLayer(
    build,
    stateOf(stage),
    { kind: 'user', facts: user, label: { place: 'finalize', text: 'USER user' } },
    () => userLayer(build, stateOf(stage), user),
  );
  const startCommand = startCommandOf(stage);
  return {
    state: { ...withUser, user: stage.saysUser ? stage.user : 'user', workdir: stage.saysWorkdir ? stage.workdir : '' },
    ...(startCommand !== undefined && { startCommand }),
  };
}
