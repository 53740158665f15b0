import { AtollError } from '../../base/error.ts';
import type { DockerInstruction, DockerStage } from '../../protocol/build.ts';
import { devContainerContext, type DevContainer } from '../../protocol/builder.ts';
import {
  Plan,
  planBytesMax,
  type DevContainerPlan,
  type PlannedBuild,
} from '../../protocol/wire/dev-container-plan.ts';
import { readerOf, Wrong } from '../../protocol/wire/read.ts';
import { openRoot } from '../layer/root.ts';
import { readText } from '../read-text.ts';
import { shownAs } from '../shown.ts';
import { parseDockerfile } from './parse.ts';

/** Where templates/devcontainer puts its plan. */
const planFile = 'opt/devcontainer/plan.json';

/**
 * The dev container that a step has planned, read from the layers shown; null if there is no plan. Errors: `invalid`
 * for a plan that can't be carried out.
 */
export function readDevContainer(): DevContainer | null {
  using view = openRoot(shownAs.view);
  const plan = readText(view, planFile, planBytesMax);
  return plan === '' ? null : devContainerOf(plan);
}

/** The dev container that the text of a plan describes. Errors: `invalid`. */
export function devContainerOf(plan: string): DevContainer {
  const { workspace, builds } = readPlan(plan);
  if (!/^\/[^/]/.test(workspace) || workspace.split('/').includes('..'))
    throw new AtollError('invalid', 'the plan of the dev container: its folder is not an absolute path without ..');
  const stages: DockerStage[] = [];
  for (const build of builds) stages.push(...stagesOf(build, stages.length));
  return { workspace, stages };
}

function readPlan(text: string): DevContainerPlan {
  const plan = readerOf(Plan)(parsed(text));
  if (plan instanceof Wrong)
    throw new AtollError('invalid', `the plan of the dev container: ${plan.path.slice(1)} must be ${plan.mustBe}`);
  return plan as DevContainerPlan;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AtollError('invalid', 'the plan of the dev container is not JSON', { cause: error });
  }
}

/** The stages of one build, which follow `before` others. */
function stagesOf({ tag, dockerfile, context, target, args }: PlannedBuild, before: number): DockerStage[] {
  const all = parseDockerfile(dockerfile, args);
  const last = target === '' ? all.length - 1 : all.findLastIndex(stage => stage.name === target.toLowerCase());
  if (last < 0) throw new AtollError('invalid', `dockerfile: there is no stage ${target.slice(0, 200)}`);
  return all.slice(0, last + 1).map((stage, number): DockerStage => {
    // Later builds refer to the image by its tag.
    const name = number === last && target === '' ? tag.toLowerCase() : stage.name;
    const instructions = stage.instructions.map(each => placed(withArgument(each, args), before, context));
    return { ...stage, name, globalArgs: { ...stage.globalArgs, ...args }, instructions };
  });
}

/** An argument given to an image's build overrides the Dockerfile's own default. */
function withArgument(instruction: DockerInstruction, args: Record<string, string>): DockerInstruction {
  return instruction.kind === 'arg' && Object.hasOwn(args, instruction.name)
    ? { ...instruction, value: null }
    : instruction;
}

/** Names of the archives that Docker's ADD unpacks. */
const archiveName = /\.(tar(\.(gz|bz2|xz|zst))?|tgz|tbz2?|txz|tzst)["']?$/i;

/** Turns copies from the build's folder into copies from the layers; stages are numbered on from those before. */
function placed(instruction: DockerInstruction, before: number, context: string): DockerInstruction {
  if (instruction.kind !== 'copy') return instruction;
  const { from, sources } = instruction;
  if (from !== '')
    return /^\d{1,3}$/.test(from) ? { ...instruction, from: String(Number(from) + before) } : instruction;
  const archive = sources.find(source => archiveName.test(source));
  if (archive !== undefined && instruction.text.startsWith('ADD'))
    throw new AtollError(
      'invalid',
      `dockerfile: line ${instruction.line}: ADD does not unpack ${archive.slice(0, 200)} here; ` +
        'use COPY, and RUN with tar',
    );
  return { ...instruction, from: devContainerContext, sources: sources.map(source => `${context}/${source}`) };
}
