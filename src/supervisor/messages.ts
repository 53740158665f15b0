import { deserialize, serialize } from 'bun:jsc';
import type { WireError } from '../wire/error.ts';
import { readPartMessage } from '../wire/part-message.ts';

/** Messages from the supervisor to a part; `settings` and `update` are packed. */
export type ToPart =
  | { kind: 'start'; settings: string }
  /** A change of what it was started with. */
  | { kind: 'update'; update: string }
  | { kind: 'answer'; id: number; value?: unknown; error?: WireError }
  | { kind: 'stop' };

/**
 * Any value as text. Messages are JSON, because root reads messages of parts without rights, and the runtime's own form
 * is not made for strangers' bytes.
 */
export const packed = (value: unknown): string => Buffer.from(serialize(value)).toString('base64');

/** In a part: what the supervisor has packed. */
export const unpacked = (text: string): unknown => deserialize(Buffer.from(text, 'base64'));

/** Messages from a part to the supervisor. */
export type FromPart =
  /** Its event loop turns. */
  | { kind: 'beat' }
  | { kind: 'phase'; text: string }
  | { kind: 'ready'; about: unknown }
  | { kind: 'failed'; error: WireError }
  /** Asks for what it has no right to do itself; answered with whether it was done, or with what was asked for. */
  | { kind: 'ask'; id: number; what: string; value: unknown };

/** Interval of beats. */
export const beatMs = 500;

/** Reads a part's message; undefined for anything else. */
export const readFromPart = (text: string): FromPart | undefined => readPartMessage(text);
