import type { WireError } from '../wire/error.ts';

/** What the supervisor says to a part. */
export type ToPart =
  | { kind: 'start'; settings: unknown }
  /** Something that it was started with has changed. */
  | { kind: 'update'; update: unknown }
  | { kind: 'answer'; id: number; error?: WireError }
  | { kind: 'stop' };

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
