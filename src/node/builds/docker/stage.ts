import type { BuildState, DockerStage } from '../../../protocol/build.ts';

/** A stage of a Dockerfile, as far as it has been carried out. */
export type StageState = BuildState & {
  shell: string[];
  /** Values of `ARG`s: visible to the rest of the stage, and to its commands. */
  args: Record<string, string>;
  entrypoint: string | string[];
  cmd: string | string[];
  /** Whether `cmd` is the stage's own: an ENTRYPOINT drops the one of the stage or image before. */
  saysCmd: boolean;
  /** Whether the stage, or one that it continues, sets the user and the directory. */
  saysUser: boolean;
  saysWorkdir: boolean;
};

/** A stage of a Dockerfile that begins from a state. */
export function newStage(state: BuildState): StageState {
  const start = { shell: ['/bin/sh', '-c'], args: {}, entrypoint: '', cmd: '', saysCmd: false };
  return { ...state, ...start, saysUser: false, saysWorkdir: false };
}

/** The part of a stage that a cache key, or a sandbox, needs. */
export function stateOf({ layers, env, user, workdir }: StageState): BuildState {
  return { layers, env, user, workdir };
}

/** The index of the stage with this name or number before `before`, or -1. */
export function findStage(stages: DockerStage[], before: number, nameOrNumber: string): number {
  const byName = stages.findLastIndex((stage, index) => index < before && stage.name === nameOrNumber.toLowerCase());
  if (byName >= 0) return byName;
  const number = /^\d+$/.test(nameOrNumber) ? Number(nameOrNumber) : -1;
  return number < before ? number : -1;
}

/** The stages that the last one needs, itself included, in order: the others are not built. */
export function neededStages(stages: DockerStage[], nameOf: (stage: DockerStage) => string): number[] {
  const needed = new Set<number>();
  const visit = (index: number) => {
    const stage = stages[index];
    if (!stage || needed.has(index)) return;
    needed.add(index);
    visit(findStage(stages, index, nameOf(stage)));
    for (const instruction of stage.instructions)
      if (instruction.kind === 'copy' && instruction.from !== '') visit(findStage(stages, index, instruction.from));
  };
  visit(stages.length - 1);
  return [...needed].sort((a, b) => a - b);
}
