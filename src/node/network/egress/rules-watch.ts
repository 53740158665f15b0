import { readdirSync } from 'node:fs';
import { startLoop, type Loop } from '../../../base/concurrency/loop.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Netlink } from '../../native/netlink.ts';
import type { Forwarding } from '../forwarding.ts';
import type { HostTableOptions } from '../rules/host-table.ts';
import { rulesAreThere } from '../rules/link-verdicts.ts';
import type { PolicyTable } from '../rules/policy-table.ts';
import type { KnownSandboxes } from './known-sandboxes.ts';

/** How often to check that the rules are there. A check takes some ten µs. */
const lookEveryMs = 1_000;

/** The packet rules of an installation, which are put back when somebody removes them. */
type WatchedRules = {
  /** Puts the rules in place, and watches them from then on. */
  install(host: Omit<HostTableOptions, 'installation' | 'policies' | 'linksNow' | 'guards'>): Promise<void>;
  /** Stops watching. The rules stay. */
  stop(): Promise<void>;
};

/** What the rules are made of, and what must know when they are new. */
type RuleParts = { installation: number; log: Log; table: PolicyTable; known: KnownSandboxes; forwarding: Forwarding };

/**
 * Reloading the host's own rules (`systemctl reload nftables`) begins, on most distributions, by removing all rules.
 * Without this installation's rules nobody would judge a sandbox's packets.
 */
export function createWatchedRules(netfilter: Netlink, parts: RuleParts): WatchedRules {
  const { installation, log, table, known, forwarding } = parts;
  let loop: Loop | undefined;
  return {
    async install(host) {
      const put = () => table.install({ ...host, linksNow: linksOf(installation), guards: forwarding.guards() });
      await put();
      const look = async () => {
        if (rulesAreThere(netfilter, installation)) return;
        log.error('somebody has removed the packet rules of sandboxes, which are put back');
        await put();
        known.refusalsBeginAnew();
      };
      loop = startLoop({ name: 'packet rules', intervalMs: () => lookEveryMs, run: look, log });
    },
    stop: async () => await loop?.stop(),
  };
}

/** The links of an installation that exist. */
function linksOf(installation: number): string[] {
  return readdirSync('/sys/class/net').filter(name => name.startsWith(`at${installation}-`));
}
