import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { dateTime, int32, int64, oneOf } from './primitives.ts';
import { BuildStatus } from './template.ts';

/** Bounds of what a build may ask for, besides the team's own limits. */
export const buildBounds = {
  nameCharactersMax: 128,
  cpuCountMax: 32,
  memoryMiBMin: 128,
  stepsMax: 1000,
  stepArgumentsMax: 1000,
  tagsMax: 100,
  /** Tags of one template. */
  tagsPerTemplateMax: 1000,
  /** Builds that a tag selected one after another; beyond that, the oldest are forgotten. */
  assignmentsPerTagMax: 20,
  /** Builds of a team that are registered but not started. */
  waitingMax: 200,
  dockerfileCharactersMax: 1 << 20,
  logPageMax: 100,
} as const;

const cpuCount = int32({ minimum: 1, maximum: buildBounds.cpuCountMax, description: '1 or even. Default 2' });
const memoryMB = int32({ minimum: buildBounds.memoryMiBMin, description: 'Even. Default 1024' });
const name = (description: string) => Type.String({ maxLength: buildBounds.nameCharactersMax, description });
const tags = Type.Array(Type.String(), { maxItems: buildBounds.tagsMax });
const readyDescription =
  'Succeeds once what the start command runs is ready. Without one the build waits 20 s where there is a start command';
const teamID = Type.String({ description: 'Deprecated; must be the team of the credential' });

/** Body of POST /v3/templates. */
export const RegisterBuild = Type.Object(
  {
    name: Type.Optional(name('Name of the template, with `:tag` where another than `default` is meant')),
    alias: Type.Optional(name('Deprecated: the same as name')),
    tags: Type.Optional(tags),
    teamID: Type.Optional(teamID),
    cpuCount: Type.Optional(cpuCount),
    memoryMB: Type.Optional(memoryMB),
    minFreeDiskMb: Type.Optional(
      int32({ minimum: 0, description: 'Free disk that sandboxes have at least, up to what the team may use' }),
    ),
  },
  { $id: 'TemplateBuildRequestV3' },
);
export type RegisterBuild = Static<typeof RegisterBuild>;

/** Answer of every registration of a build. */
export const RegisteredBuild = Type.Object(
  {
    templateID: Type.String(),
    buildID: Type.String(),
    public: Type.Boolean(),
    names: Type.Array(Type.String()),
    tags: Type.Array(Type.String()),
    aliases: Type.Array(Type.String(), { description: 'Deprecated' }),
  },
  { $id: 'TemplateRequestResponseV3' },
);

export type RegisteredBuild = Static<typeof RegisteredBuild>;

/** Body of POST /v2/templates, sent by older SDKs. */
export const RegisterBuildV2 = Type.Object(
  {
    alias: name('Name of the template'),
    teamID: Type.Optional(teamID),
    cpuCount: Type.Optional(cpuCount),
    memoryMB: Type.Optional(memoryMB),
  },
  { $id: 'TemplateBuildRequestV2' },
);

/** Body of POST /templates and /templates/{templateID}, sent by older command lines: a build from a Dockerfile. */
export const DockerfileBuild = Type.Object(
  {
    dockerfile: Type.String({ maxLength: buildBounds.dockerfileCharactersMax }),
    alias: Type.Optional(name('Name of the template')),
    teamID: Type.Optional(teamID),
    startCmd: Type.Optional(Type.String({ description: 'Run after the build; sandboxes start with it running' })),
    readyCmd: Type.Optional(Type.String({ description: readyDescription })),
    cpuCount: Type.Optional(cpuCount),
    memoryMB: Type.Optional(memoryMB),
  },
  { $id: 'TemplateBuildRequest' },
);
export type DockerfileBuild = Static<typeof DockerfileBuild>;

/** One step of a build. */
const TemplateStep = Type.Object(
  {
    type: Type.String({ description: 'RUN, COPY, ENV, USER or WORKDIR' }),
    args: Type.Optional(Type.Array(Type.String(), { maxItems: buildBounds.stepArgumentsMax })),
    filesHash: Type.Optional(
      Type.String({ pattern: '^[0-9a-f]{64}$', description: 'Of the uploaded files of a COPY' }),
    ),
    force: Type.Optional(
      Type.Boolean({ default: false, description: 'Run this step and all after it, cached or not' }),
    ),
  },
  { $id: 'TemplateStep' },
);

/** Credentials for the registry of `fromImage`. */
const FromImageRegistry = Type.Union(
  [
    Type.Object({ type: Type.Literal('registry'), username: Type.String(), password: Type.String() }),
    Type.Object({
      type: Type.Literal('aws'),
      awsAccessKeyId: Type.String(),
      awsSecretAccessKey: Type.String(),
      awsRegion: Type.String(),
    }),
    Type.Object({ type: Type.Literal('gcp'), serviceAccountJson: Type.String() }),
  ],
  { $id: 'FromImageRegistry' },
);

/** Body of POST /v2/templates/{templateID}/builds/{buildID}. */
export const StartBuildV2 = Type.Object(
  {
    fromImage: Type.Optional(Type.String()),
    fromTemplate: Type.Optional(Type.String()),
    fromImageRegistry: Type.Optional(FromImageRegistry),
    force: Type.Optional(Type.Boolean({ default: false })),
    steps: Type.Optional(Type.Array(TemplateStep, { maxItems: buildBounds.stepsMax })),
    startCmd: Type.Optional(Type.String()),
    readyCmd: Type.Optional(Type.String({ description: readyDescription })),
  },
  { $id: 'TemplateBuildStartV2' },
);
export type StartBuildV2 = Static<typeof StartBuildV2>;

/**
 * Answer of GET /templates/{templateID}/files/{hash}: where to upload the files of a COPY, unless they are there
 * already.
 */
export const FileUpload = Type.Object(
  {
    present: Type.Boolean({ description: 'The files are here already' }),
    url: Type.Optional(Type.String({ description: 'Where to PUT the archive' })),
    headers: Type.Optional(
      Type.Unsafe<Record<string, string>>(Type.Object({}, { additionalProperties: Type.String() })),
    ),
  },
  { $id: 'TemplateBuildFileUpload' },
);

/** From the least to the most important. */
export const logLevels = ['debug', 'info', 'warn', 'error'] as const;
/** One entry of a build's log. */
export const BuildLogEntry = Type.Object(
  { timestamp: dateTime(), level: oneOf(logLevels), message: Type.String(), step: Type.Optional(Type.String()) },
  { $id: 'BuildLogEntry' },
);
export type BuildLogEntry = Static<typeof BuildLogEntry>;

/** Answer of GET /templates/{templateID}/builds/{buildID}/status. */
export const BuildInfo = Type.Object(
  {
    templateID: Type.String(),
    buildID: Type.String(),
    status: BuildStatus,
    logs: Type.Array(Type.String(), { description: 'Deprecated, empty' }),
    logEntries: Type.Array(BuildLogEntry),
    reason: Type.Optional(
      Type.Object({
        message: Type.String(),
        step: Type.Optional(Type.String({ description: '`base`, `finalize` or the number of a step, from 1' })),
        logEntries: Type.Optional(Type.Array(BuildLogEntry)),
      }),
    ),
  },
  { $id: 'TemplateBuildInfo' },
);

export type BuildInfo = Static<typeof BuildInfo>;

/** Query of GET /templates/{templateID}/builds/{buildID}/status. */
export const BuildStatusQuery = Type.Object({
  logsOffset: Type.Optional(int32({ minimum: 0, default: 0 })),
  limit: Type.Optional(int32({ minimum: 0, maximum: buildBounds.logPageMax, default: buildBounds.logPageMax })),
  level: Type.Optional(oneOf(logLevels)),
});

/** Query of GET /templates/{templateID}/builds/{buildID}/logs. */
export const BuildLogsQuery = Type.Object({
  cursor: Type.Optional(int64({ minimum: 0, description: 'Epoch milliseconds' })),
  limit: Type.Optional(int32({ minimum: 0, maximum: buildBounds.logPageMax, default: buildBounds.logPageMax })),
  direction: Type.Optional(oneOf(['forward', 'backward'] as const)),
  level: Type.Optional(oneOf(logLevels)),
  source: Type.Optional(oneOf(['temporary', 'persistent'] as const)),
});

/** Answer of GET /templates/{templateID}/builds/{buildID}/logs. */
export const BuildLogs = Type.Object({ logs: Type.Array(BuildLogEntry) }, { $id: 'TemplateBuildLogsResponse' });

/** Body of PATCH /v2/templates/{templateID}. */
export const TemplateUpdate = Type.Object({ public: Type.Optional(Type.Boolean()) }, { $id: 'TemplateUpdateRequest' });
/** Answer of PATCH /v2/templates/{templateID}. */
export const TemplateUpdated = Type.Object({ names: Type.Array(Type.String()) }, { $id: 'TemplateUpdateResponse' });

/** Body of POST /templates/tags: gives one build further tags. */
export const AssignTags = Type.Object(
  { target: Type.String({ description: 'name[:tag]' }), tags },
  { $id: 'AssignTemplateTagsRequest' },
);
/** Answer of POST /templates/tags. */
export const AssignedTags = Type.Object(
  { tags: Type.Array(Type.String()), buildID: Type.String() },
  { $id: 'AssignedTemplateTags' },
);
/** Body of DELETE /templates/tags. */
export const DeleteTags = Type.Object({ name: Type.String(), tags }, { $id: 'DeleteTemplateTagsRequest' });
/** A tag and the build that it names. */
export const TemplateTag = Type.Object(
  { tag: Type.String(), buildID: Type.String(), createdAt: dateTime() },
  { $id: 'TemplateTag' },
);
