import { deserialize, serialize } from 'bun:jsc';
import type { WireError } from '../wire/error.ts';
import { readPartMessage } from '../wire/part-message.ts';

/** What the supervisor says to a part; `settings` and `update` are packed. */
export type ToPart =
  | { kind: 'start'; settings: string }
  /** Something that it was started with has changed. */
  | { kind: 'update'; update: string }
  | { kind: 'answer'; id: number; error?: WireError }
  | { kind: 'stop' };

/**
 * What the supervisor says with, whatever it holds, as text: messages are JSON, because root reads what parts without rights send,
 * and the runtime's own form is not made for what strangers have written.
 */
export const packed = (value: unknown): string => Buffer.from(serialize(value)).toString('base64');

/** In a part: what the supervisor has packed. */
export const unpacked = (text: string): unknown => deserialize(Buffer.from(text, 'base64'));

/** What a part says to the supervisor. */
export type FromPart =
  /** Its event loop turns. */
  | { kind: 'beat' }
  | { kind: 'phase'; text: string }
  | { kind: 'ready'; about: unknown }
  | { kind: 'failed'; error: WireError }
  /** Asks for what it has no right to do itself; answered with whether it was done. */
  | { kind: 'ask'; id: number; what: string; value: unknown };

/** How often a part says that it lives. */
export const beatMs = 500;

/** Reads what a part says; undefined where it is no message. */
export const readFromPart = (value: unknown): FromPart | undefined => readPartMessage(value);
