import { Type } from '@sinclair/typebox';
import type {
  BuildLogEntry,
  BuildProgress,
  BuildResult,
  BuildSource,
  BuildState,
  BuildStep,
  DockerInstruction,
  DockerMount,
  DockerStage,
  Heredoc,
  MadeStep,
  RegistryCredential,
  StartBuild,
  StepOutcome,
} from '../build.ts';
import { progressBounds } from '../build.ts';
import { count, digest, digests, identifier, mapOf, oneOf, optional, schemaOf } from './schema.ts';
import { DriverNames, Resources, Started } from './start-schemas.ts';

// Schemas of the messages about builds. Their types say what they mean.

const text = () => Type.String();
const texts = () => Type.Array(Type.String());

const Credential = schemaOf<RegistryCredential>()(
  Type.Union([
    Type.Object({ type: Type.Literal('registry'), username: text(), password: text() }),
    Type.Object({ type: Type.Literal('aws'), awsAccessKeyId: text(), awsSecretAccessKey: text(), awsRegion: text() }),
    Type.Object({ type: Type.Literal('gcp'), serviceAccountJson: text() }),
  ]),
);

export const State = schemaOf<BuildState>()(
  Type.Object({ layers: digests(), env: mapOf(text()), user: text(), workdir: text() }),
);

const Here = schemaOf<Heredoc>()(Type.Object({ name: text(), content: text(), expand: Type.Boolean() }));
const Mount = schemaOf<DockerMount>()(
  Type.Object({
    kind: oneOf('cache', 'tmpfs'),
    target: text(),
    id: text(),
    owner: optional(Type.Object({ uid: count(), gid: count() })),
    mode: optional(count()),
  }),
);
const command = () => Type.Union([text(), texts()]);
const written = { line: Type.Number(), text: text() };
const placed = { destination: text(), chown: text(), chmod: text() };

const Instruction = schemaOf<DockerInstruction>()(
  Type.Union([
    Type.Object({ ...written, kind: Type.Literal('arg'), name: text(), value: Type.Union([text(), Type.Null()]) }),
    Type.Object({ ...written, kind: Type.Literal('env'), pairs: Type.Array(Type.Tuple([text(), text()])) }),
    Type.Object({
      ...written,
      kind: Type.Literal('run'),
      command: command(),
      heredocs: Type.Array(Here),
      mounts: Type.Array(Mount),
      network: optional(Type.Literal('none')),
    }),
    Type.Object({ ...written, ...placed, kind: Type.Literal('copy'), from: text(), sources: texts() }),
    Type.Object({ ...written, ...placed, kind: Type.Literal('write'), files: Type.Array(Here) }),
    Type.Object({ ...written, kind: Type.Literal('workdir'), path: text() }),
    Type.Object({ ...written, kind: Type.Literal('user'), name: text() }),
    Type.Object({ ...written, kind: Type.Literal('shell'), argv: texts() }),
    Type.Object({ ...written, kind: oneOf('entrypoint', 'cmd'), command: command() }),
  ]),
);

export const Stage = schemaOf<DockerStage>()(
  Type.Object({
    from: text(),
    name: Type.Union([text(), Type.Null()]),
    globalArgs: mapOf(text()),
    instructions: Type.Array(Instruction),
  }),
);

const Source = schemaOf<BuildSource>()(
  Type.Union([
    Type.Object({ kind: Type.Literal('image'), reference: text(), credential: optional(Credential) }),
    Type.Object({ kind: Type.Literal('state'), state: State, provisions: optional(Type.Boolean()) }),
    Type.Object({ kind: Type.Literal('dockerfile'), stages: Type.Array(Stage), templates: mapOf(State) }),
  ]),
);

const Step = schemaOf<BuildStep>()(
  Type.Object({ type: text(), args: texts(), filesHash: optional(identifier()), force: Type.Boolean() }),
);

export const Start = schemaOf<StartBuild>()(
  Type.Object({
    buildId: identifier(),
    templateId: identifier(),
    teamId: identifier(),
    source: Source,
    steps: Type.Array(Step),
    force: Type.Boolean(),
    startsAsUser: Type.Boolean(),
    startCommand: optional(text()),
    readyCommand: optional(text()),
    resources: Resources,
    driver: optional(DriverNames),
    sharesSteps: optional(Type.Boolean()),
  }),
);

const layerOrNone = () => Type.Union([digest(), Type.Null()]);

export const Outcome = schemaOf<StepOutcome>()(Type.Object({ layer: layerOrNone() }));

const Made = schemaOf<MadeStep>()(Type.Object({ key: identifier(), layer: layerOrNone() }));

const LogLine = schemaOf<BuildLogEntry>()(
  Type.Object({
    timestampMs: Type.Number(),
    level: oneOf('debug', 'info', 'warn', 'error'),
    message: Type.String({ maxLength: progressBounds.messageCharacters }),
    step: optional(text()),
  }),
);

const Result = schemaOf<BuildResult>()(
  Type.Union([
    Type.Object({
      status: Type.Literal('ready'),
      state: State,
      startCommand: optional(text()),
      readyCommand: optional(text()),
      started: optional(Started),
      layersMiB: Type.Number(),
    }),
    Type.Object({ status: Type.Literal('error'), message: text(), step: optional(text()) }),
  ]),
);

export const Progress = schemaOf<BuildProgress>()(
  Type.Object({
    entries: Type.Array(LogLine, { maxItems: progressBounds.entries }),
    next: count(),
    question: optional(identifier()),
    result: optional(Result),
    made: optional(Type.Array(Made, { maxItems: progressBounds.made })),
  }),
);
