import type { EgressPolicy } from '../../../../src/protocol/network/network.ts';
import { addresses, hostileServer, silentServer } from '../../../egress/support/addresses.ts';

/** The policies under which attempts are made, and which of their traffic may appear on the internet (nft matches). */
export const policies = {
  /** Two names, and nothing else. */
  names: {
    policy: { internetAccess: true, denyOut: ['0.0.0.0/0'], allowOut: ['allowed.test', '*.wild.test'] },
    permitted: [
      `ip daddr { ${addresses.allowed}, ${addresses.wild}, ${hostileServer}, ${silentServer} } tcp dport { 80, 443 }`,
      `ip daddr ${addresses.publicResolver} meta l4proto { tcp, udp } th dport 53`,
    ],
  },
  /** One address. */
  addresses: {
    policy: { internetAccess: false, allowOut: [addresses.allowed] },
    permitted: [`ip daddr ${addresses.allowed}`],
  },
  closed: { policy: { internetAccess: false }, permitted: [] },
  /** Everything but what is protected in any case. */
  open: { policy: { internetAccess: true }, permitted: ['ip daddr != @victims'] },
  /** The same through the proxy, which checks names. */
  headers: {
    policy: { internetAccess: true, headerRules: { 'allowed.test': { Authorization: 'secret of the rule' } } },
    permitted: ['ip daddr != @victims'],
  },
  socks: {
    policy: { internetAccess: true, egressProxy: { address: `${addresses.socks}:1080` } },
    permitted: [
      `ip daddr ${addresses.socks} tcp dport 1080`,
      `ip daddr ${addresses.publicResolver} meta l4proto { tcp, udp } th dport 53`,
    ],
  },
} satisfies Record<string, { policy: EgressPolicy; permitted: string[] }>;

export type Attempt = {
  policy: keyof typeof policies;
  /** Unique, and names the means that it tries: `HTTP: two Hosts`. */
  name: string;
  /** Python, after prelude.py. */
  program: string;
  /** It runs in its own sandbox, and others that share its proxy must be served while it goes on and afterwards. */
  mustServe?: boolean;
};

/** Attempts under one policy and by one means, from a table of names and programs. */
export function attempts(policy: Attempt['policy'], means: string, table: Record<string, string>): Attempt[] {
  return Object.entries(table).map(([name, program]) => ({ policy, name: `${means}: ${name}`, program }));
}
