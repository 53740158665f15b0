import { Type, type TSchema } from '@sinclair/typebox';
import { mapOf, schemaOf } from './schema.ts';

// Schema of what templates/devcontainer leaves for the builder. Anybody who has a build may have written it.

/** Bytes of a plan, and so of everything in it. */
export const planBytesMax = 4 << 20;
const buildsMax = 4;
const pathCharactersMax = 1_024;

/** One image that a container engine was asked to build. */
export type PlannedBuild = {
  /** The name by which later builds refer to it. */
  tag: string;
  dockerfile: string;
  /** The folder that its COPYs read from. */
  context: string;
  /** The stage to build; empty: the last one. */
  target: string;
  args: Record<string, string>;
};

/** The images of a dev container, the last of which is its own, and the folder that goes into it. */
export type DevContainerPlan = { workspace: string; builds: PlannedBuild[] };

const path = () => Type.String({ maxLength: pathCharactersMax });

const Planned = schemaOf<PlannedBuild>()(
  Type.Object({
    tag: Type.String(),
    dockerfile: Type.String(),
    context: path(),
    target: Type.String(),
    args: mapOf(Type.String()),
  }),
);

/** The schema of a plan. */
export const Plan: TSchema = schemaOf<DevContainerPlan>()(
  Type.Object({ workspace: path(), builds: Type.Array(Planned, { maxItems: buildsMax }) }),
);
