import type { Release } from './shares/descriptors.ts';
import type { Share } from './shares/turns.ts';

/** Where to connect to: an address, or a name whose address we look up ourselves. */
export type Target = { host: string; port: number };

/** On whose account something is done: whose time it is, and whose descriptors. */
export type Account = { share: Share; take(): Release | undefined };
