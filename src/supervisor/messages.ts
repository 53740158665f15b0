import { deserialize, serialize } from 'bun:jsc';
import type { WireError } from '../wire/error.ts';
import { readPartMessage } from '../wire/part-message.ts';

/** Messages from the supervisor to a part; `settings` and `update` are packed. */
export type ToPart =
  | { kind: 'start'; settings: string }
  /** A change of the settings that the part was started with. */
  | { kind: 'update'; update: string }
  | { kind: 'answer'; id: number; value?: unknown; error?: WireError }
  | { kind: 'stop' };

/**
 * Any value as text. Messages are JSON because root reads messages of parts without rights, and the runtime's own
 * format is not made for strangers' bytes.
 */
export const packed = (value: unknown): string => Buffer.from(serialize(value)).toString('base64');

/** The value that the supervisor has packed; for use in a part. */
export const unpacked = (text: string): unknown => deserialize(Buffer.from(text, 'base64'));

/** Messages from a part to the supervisor. */
export type FromPart =
  /** Sent while its event loop turns. */
  | { kind: 'beat' }
  | { kind: 'phase'; text: string }
  | { kind: 'ready'; about: unknown }
  | { kind: 'failed'; error: WireError }
  /**
   * Asks for something that the part has no right to do itself. The answer says whether it was done, or holds what was
   * asked for.
   */
  | { kind: 'ask'; id: number; what: string; value: unknown };

/** Interval of beats. */
export const beatMs = 500;

/** Reads a part's message; undefined for anything else. */
export const readFromPart = (text: string): FromPart | undefined => readPartMessage(text);
