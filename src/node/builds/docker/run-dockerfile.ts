import type { BuildState, DockerStage } from '../../../protocol/build.ts';
import { cachedLayer, type BuildContext } from '../build-context.ts';
import { shortened } from '../label.ts';
import { flattenWhereDeep } from '../flatten.ts';
import { pullImage, type PullOptions } from '../image/pull.ts';
import { makeLayer } from '../make-layer.ts';
import { provision } from '../provision.ts';
import { userLayer } from '../steps/user.ts';
import { valueOf } from '../environment.ts';
import { expandWord } from './expand.ts';
import { runInstruction, type Stages } from './run-instruction.ts';
import { findStage, neededStages, newStage, platformArgs, stateOf, type StageState } from './stage.ts';
import { startCommandOf } from './start-command.ts';

export type DockerSource = { stages: DockerStage[]; templates: Record<string, BuildState> };

/**
 * Carries out the stages of a Dockerfile that its last one needs. Sandboxes run as `user` in its home unless the file says
 * otherwise; its ENTRYPOINT and CMD are the start command.
 */
export async function runDockerfile(context: BuildContext, options: PullOptions, { stages, templates }: DockerSource): Promise<{ state: BuildState; startCommand?: string }> {
  const nameOf = (stage: DockerStage) => expandWord(stage.from, name => valueOf(stage.globalArgs, name) ?? valueOf(platformArgs, name));
  const done = new Map<number, StageState>();
  const last = stages.length - 1;
  const base = baseStages(stages, nameOf);
  const images = new Map<string, Promise<BuildState>>();
  const imageState = (reference: string): Promise<BuildState> => {
    const template = valueOf(templates, reference);
    if (template) return Promise.resolve(template);
    const known = images.get(reference) ?? (reference === 'scratch' ? emptyState(context) : pullImage(context, options, reference, undefined));
    images.set(reference, known);
    return known;
  };

  for (const index of neededStages(stages, nameOf)) {
    const stage = stages[index];
    if (!stage) continue;
    const from = nameOf(stage);
    const before = done.get(findStage(stages, index, from));
    // What sandboxes are made from gets what they need at once: later changes do not undo the cache.
    const image = before ? undefined : await imageState(from);
    const begin = before ?? newStage(image && base.has(index) && !valueOf(templates, from) ? await provision(context, image) : (image ?? (await emptyState(context))));
    let state: StageState = { ...begin, args: {} };
    const others: Stages = {
      globalArgs: stage.globalArgs,
      stateOf: async name => {
        const other = done.get(findStage(stages, index, name));
        return other ? stateOf(other) : imageState(name);
      },
    };
    for (const [number, instruction] of stage.instructions.entries()) {
      context.signal.throwIfAborted();
      // Some instructions wait for nothing: others have their turn between any two.
      await Bun.sleep(0);
      const label = `[${stage.name ?? (index === last ? 'builder' : `stage ${index}`)} ${number + 1}/${stage.instructions.length}] ${shortened(instruction.text)}`;
      state = { ...(await runInstruction(context, state, instruction, others, label)) };
      state = { ...state, layers: (await flattenWhereDeep(context, stateOf(state))).layers };
    }
    done.set(index, state);
  }
  return finish(context, done.get(last) ?? newStage(await emptyState(context)));
}

/** The stages that the last one is made on top of, itself included. */
function baseStages(stages: DockerStage[], nameOf: (stage: DockerStage) => string): Set<number> {
  const base = new Set<number>();
  for (let index = stages.length - 1; index >= 0; ) {
    base.add(index);
    const stage = stages[index];
    index = stage ? findStage(stages, index, nameOf(stage)) : -1;
  }
  return base;
}

async function emptyState(context: BuildContext): Promise<BuildState> {
  const { node, limits, signal } = context;
  const nothing: BuildState = { layers: [], env: {}, user: 'root', workdir: '' };
  return cachedLayer(context, nothing, { kind: 'scratch', facts: null, label: '[base] FROM scratch' }, () => makeLayer(node, { job: { kind: 'import', limits }, signal }));
}

async function finish(context: BuildContext, stage: StageState): Promise<{ state: BuildState; startCommand?: string }> {
  const user = { name: 'user', admin: true };
  const withUser = await cachedLayer(context, stateOf(stage), { kind: 'user', facts: user, label: '[finalize] USER user' }, () => userLayer(context, stateOf(stage), user));
  const startCommand = startCommandOf(stage);
  return {
    state: {
      ...withUser,
      user: stage.saysUser ? stage.user : 'user',
      workdir: stage.saysWorkdir ? stage.workdir : '',
    },
    ...(startCommand !== undefined && { startCommand }),
  };
}
