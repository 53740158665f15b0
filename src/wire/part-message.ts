import { type Static, Type } from '@sinclair/typebox';
import { WireErrorSchema } from './message.ts';
import { readerOf, Wrong } from '../protocol/wire/read.ts';
import { parseJson } from '../base/json-text.ts';

/** Messages from a part of the platform to its supervisor. */
const PartMessage = Type.Union([
  Type.Object({ kind: Type.Literal('beat') }),
  Type.Object({ kind: Type.Literal('phase'), text: Type.String({ maxLength: 1_000 }) }),
  Type.Object({ kind: Type.Literal('ready'), about: Type.Unknown() }),
  Type.Object({ kind: Type.Literal('failed'), error: WireErrorSchema }),
  Type.Object({
    kind: Type.Literal('ask'),
    id: Type.Integer(),
    what: Type.String({ maxLength: 100 }),
    value: Type.Unknown(),
  }),
]);

const read = readerOf(PartMessage);

/** The report is shown on a terminal, and sent to a service manager line by line. */
const plain = (text: string) => text.replace(/\p{Cc}+/gu, ' ');

/** Reads a message of a part, which may have been taken over. Undefined: it is not valid. */
export function readPartMessage(text: string): Static<typeof PartMessage> | undefined {
  const message = read(parseJson(text));
  if (message instanceof Wrong) return undefined;
  const known = message as Static<typeof PartMessage>;
  return known.kind === 'phase' ? { ...known, text: plain(known.text) } : known;
}
