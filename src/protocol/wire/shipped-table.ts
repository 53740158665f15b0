import { Type } from '@sinclair/typebox';
import type { ShippedDefinition, ShippedProtocol } from '../shipped.ts';
import { State } from './build-schemas.ts';
import { method, type MethodTable } from './method.ts';
import { digest, digests, identifier, nothing, optional, schemaOf } from './schema.ts';

/** Long enough to fetch and install packages, or to wait for another installation that does. Milliseconds. */
const makingMs = 60 * 60_000;
const texts = () => Type.Array(Type.String());

const Definition = schemaOf<ShippedDefinition>()(
  Type.Object({
    fromTemplate: optional(Type.String()),
    fromMachine: optional(Type.Object({ packages: Type.String(), npm: Type.String() })),
    cpuCount: optional(Type.Number()),
    memoryMB: optional(Type.Number()),
    files: optional(texts()),
    steps: optional(Type.Array(Type.Object({ type: Type.String(), args: texts() }))),
    startCmd: optional(Type.String()),
    readyCmd: optional(Type.String()),
  }),
);
const StateOrNull = Type.Union([State, Type.Null()]);

/** The methods of a node for the templates that come with the platform. */
export const shippedTable = {
  has: method([digests()], Type.Boolean()),
  key: method([identifier()], identifier()),
  define: method([identifier()], Definition),
  begin: method([identifier(), identifier()], StateOrNull, { deadlineMs: makingMs }),
  end: method([identifier(), identifier(), StateOrNull], nothing(), { deadlineMs: makingMs }),
  files: method([identifier()], Type.String()),
  baseRootfs: method([identifier()], digest(), { deadlineMs: makingMs }),
} satisfies MethodTable<ShippedProtocol>;
