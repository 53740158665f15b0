import { Type, type TSchema } from '@sinclair/typebox';
import {
  imageLayersMax,
  type BuilderAnswers,
  type BuilderQuestion,
  type DevContainer,
  type FoundFile,
  type FoundImage,
  type ImageDescription,
  type LayerMade,
  type Login,
  type Looked,
} from '../builder.ts';
import { Stage } from './build-schemas.ts';
import { count, digest, mapOf, optional, schemaOf } from './schema.ts';

// Schemas of a builder's answers. The author of what the builder reads may speak through it.

/** Characters of a host with its port, and of the authorization that a registry wants in each request. */
const hostLengthMax = 300;
const secretLengthMax = 64 << 10;
const errorCodeLengthMax = 100;
/** Characters of a path, as the kernel takes them. */
const pathLengthMax = 4096;
/** Files that one job looks for at most. */
const lookedAtMax = 1_000;

const secret = () => Type.String({ maxLength: secretLengthMax });

const Made = schemaOf<LayerMade>()(Type.Union([Type.Object({ bytes: count(), inodes: count() }), Type.Null()]));

const Look = schemaOf<Looked>()(
  Type.Object({
    files: Type.Array(Type.Boolean(), { maxItems: lookedAtMax }),
    user: Type.Object({ home: Type.String({ maxLength: pathLengthMax }), known: Type.Boolean() }),
  }),
);

const DevContainerPlan = schemaOf<DevContainer | null>()(
  Type.Union([
    Type.Object({ workspace: Type.String({ maxLength: pathLengthMax }), stages: Type.Array(Stage) }),
    Type.Null(),
  ]),
);

const Image = schemaOf<ImageDescription>()(
  Type.Object({
    digest: digest(),
    env: mapOf(Type.String()),
    layers: Type.Array(Type.Object({ digest: digest(), size: count(), diffId: digest() }), {
      maxItems: imageLayersMax,
    }),
  }),
);

const SignIn = schemaOf<Login>()(Type.Object({ username: secret(), password: secret() }));
const RegistryImage = schemaOf<FoundImage>()(
  Type.Object({ image: Image, login: optional(SignIn), authorization: optional(secret()) }),
);
const FileImage = schemaOf<FoundFile>()(Type.Object({ image: Image, version: digest() }));

/** The answers of each kind of job. */
const answers: { [Kind in keyof BuilderAnswers]: TSchema & { static: BuilderAnswers[Kind] } } = {
  import: Made,
  pack: Made,
  copy: Made,
  'copy-between': Made,
  directory: Made,
  dockerfile: Type.Array(Stage),
  look: Look,
  'dev-container': DevContainerPlan,
  digest: digest(),
  'registry-image': RegistryImage,
  'registry-blob': Type.Null(),
  'file-image': FileImage,
  'file-blob': Type.Null(),
};

const Question = schemaOf<BuilderQuestion>()(
  Type.Object({ resolve: Type.Object({ host: Type.String({ maxLength: hostLengthMax }), isSecure: Type.Boolean() }) }),
);
const Failure = Type.Object({
  error: Type.Object({ code: Type.String({ maxLength: errorCodeLengthMax }), message: Type.String() }),
});

/** The schema of a line from a builder that has a job of the kind: a question, or its answer. */
export function builderSays(kind: keyof BuilderAnswers): TSchema {
  return Type.Union([Question, Failure, Type.Object({ ok: answers[kind] })]);
}
