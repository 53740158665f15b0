import type { Release } from './shares/descriptors.ts';
import type { Share } from './shares/turns.ts';

/** Where to connect: an address, or a name whose address the proxy looks up itself. */
export type Target = { host: string; port: number };

/** The account of a sandbox: it pays with the sandbox's time and descriptors. */
export type Account = { share: Share; take(): Release | undefined };
