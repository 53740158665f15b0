import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { dateTime, int32, int64, nullable, oneOf } from './primitives.ts';

/** `waiting`: registered, but not started. `ready` and `error` are final. */
export const buildStatuses = ['waiting', 'building', 'ready', 'error'] as const;
export type BuildStatus = (typeof buildStatuses)[number];
/** The status of a build as clients see it. */
export const BuildStatus = oneOf(buildStatuses);

const sizes = { cpuCount: int32({ minimum: 1 }), memoryMB: int32({ minimum: 128 }) };

const names = {
  aliases: Type.Array(Type.String(), { description: 'Deprecated' }),
  names: Type.Array(Type.String(), { description: 'namespace/alias, or the bare alias when it has no namespace' }),
};

const use = {
  createdAt: dateTime(),
  updatedAt: dateTime(),
  lastSpawnedAt: nullable(dateTime()),
  spawnCount: int64({ minimum: 0 }),
};

/** A template as lists show it. */
export const Template = Type.Object(
  {
    templateID: Type.String(),
    buildID: Type.String({ description: 'The newest ready build; the zero UUID when there is none' }),
    ...sizes,
    diskSizeMB: int32({ minimum: 0 }),
    public: Type.Boolean(),
    ...names,
    ...use,
    createdBy: nullable(Type.Object({ id: Type.String({ format: 'uuid' }), email: nullable(Type.String()) })),
    buildCount: int32({ minimum: 0 }),
    envdVersion: Type.String(),
    buildStatus: BuildStatus,
  },
  { $id: 'Template' },
);
export type Template = Static<typeof Template>;

/** A build of a template. */
export const TemplateBuild = Type.Object(
  {
    buildID: Type.String({ format: 'uuid' }),
    status: BuildStatus,
    createdAt: dateTime(),
    updatedAt: dateTime(),
    finishedAt: Type.Optional(dateTime()),
    ...sizes,
    diskSizeMB: Type.Optional(int32({ minimum: 0 })),
    envdVersion: Type.Optional(Type.String()),
  },
  { $id: 'TemplateBuild' },
);
export type TemplateBuild = Static<typeof TemplateBuild>;

/** A template with a page of its builds, newest first. */
export const TemplateWithBuilds = Type.Object(
  { templateID: Type.String(), public: Type.Boolean(), ...names, ...use, builds: Type.Array(TemplateBuild) },
  { $id: 'TemplateWithBuilds' },
);
export type TemplateWithBuilds = Static<typeof TemplateWithBuilds>;

/** How sandboxes of a template start, and the layers of their files, lowest first. */
export const TemplateContent = Type.Object(
  {
    buildID: Type.String({ format: 'uuid', description: 'The newest build that is ready' }),
    user: Type.String(),
    workdir: Type.Optional(Type.String({ description: 'Absent: the home directory of the user' })),
    startCommand: Type.Optional(Type.String()),
    readyCommand: Type.Optional(Type.String()),
    layers: Type.Array(
      Type.Object({
        digest: Type.String(),
        sizeBytes: Type.Optional(
          Type.Integer({ minimum: 0, description: 'Absent where no machine that has it answers' }),
        ),
        sharedBy: Type.Array(Type.Object({ templateID: Type.String(), ...names }), {
          description: 'Other templates that have it, of the team and those that every team may use',
        }),
      }),
    ),
  },
  { $id: 'TemplateContent' },
);
export type TemplateContent = Static<typeof TemplateContent>;

/** Answer of GET /templates/aliases/{alias}. */
export const TemplateAlias = Type.Object(
  { templateID: Type.String(), public: Type.Boolean() },
  { $id: 'TemplateAlias' },
);
