import { type Static, Type } from '@sinclair/typebox';
import { WireErrorSchema } from './message.ts';
import { readerOf, Wrong } from './read.ts';

/** What a part of the platform says to who watches it. */
const PartMessage = Type.Union([
  Type.Object({ kind: Type.Literal('beat') }),
  Type.Object({ kind: Type.Literal('phase'), text: Type.String() }),
  Type.Object({ kind: Type.Literal('ready'), about: Type.Unknown() }),
  Type.Object({ kind: Type.Literal('failed'), error: WireErrorSchema }),
  Type.Object({ kind: Type.Literal('ask'), id: Type.Integer(), what: Type.String(), value: Type.Unknown() }),
]);

const read = readerOf(PartMessage);

/** Reads a message of a part, which may have been taken over. Undefined: it is none. */
export function readPartMessage(value: unknown): Static<typeof PartMessage> | undefined {
  const message = read(value);
  return message instanceof Wrong ? undefined : (message as Static<typeof PartMessage>);
}
