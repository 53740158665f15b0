import { Type, type TSchema } from '@sinclair/typebox';
import { AtollError } from '../../base/error.ts';
import { readerOf, Wrong } from './read.ts';
import { identifier, line, schemaOf } from './schema.ts';

// What parts of the platform report to their supervisor, which is root: it writes the reports to files, shows them, and
// uses them when it starts the parts again. The parts have no rights, and may have been taken over.

/** The api's report once it serves. */
export type ApiAbout = {
  apiKey: string;
  building: string[];
  /** Path of a link that signs the operator in at the dashboard; null where the dashboard is not built. */
  signInPath: string | null;
};

/** The edge's report once it serves. */
export type EdgeAbout = { port: number; tlsPort: number | null };

/** The certificate that a gate exchanges its present one for. PEM. */
type GateIdentity = { certificate: string; key: string; authority: string };

const portMax = 65_535;
/** Characters; longer than any certificate or key. */
const pemLengthMax = 10_000;
const port = () => Type.Integer({ minimum: 1, maximum: portMax });
const pem = () => Type.String({ maxLength: pemLengthMax });

/** Reads it. Errors: `invalid`. */
export const readApiAbout = checked(
  schemaOf<ApiAbout>()(
    Type.Object({ apiKey: line(), building: Type.Array(identifier()), signInPath: Type.Union([line(), Type.Null()]) }),
  ),
);

/** Reads it. Errors: `invalid`. */
export const readEdgeAbout = checked(
  schemaOf<EdgeAbout>()(Type.Object({ port: port(), tlsPort: Type.Union([port(), Type.Null()]) })),
);

/** Reads it. Errors: `invalid`. */
export const readGateIdentity = checked(
  schemaOf<GateIdentity>()(Type.Object({ certificate: pem(), key: pem(), authority: pem() })),
);

function checked<T>(schema: TSchema & { static: T }): (said: unknown) => T {
  const read = readerOf(schema);
  return said => {
    const known = read(said);
    if (known instanceof Wrong) throw new AtollError('invalid', `what it says${known.path} must be ${known.mustBe}`);
    return known as T;
  };
}
