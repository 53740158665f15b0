import { readdirSync } from 'node:fs';
import { startLoop, type Loop } from '../../../base/concurrency/loop.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { Netlink } from '../../native/netlink.ts';
import type { Forwarding } from '../forwarding.ts';
import type { HostTableOptions } from '../rules/host-table.ts';
import { rulesAreThere } from '../rules/link-verdicts.ts';
import type { PolicyTable } from '../rules/policy-table.ts';
import type { KnownSandboxes } from './known-sandboxes.ts';

/** How often it is looked whether the rules are there. A look takes some ten µs. */
const lookEveryMs = 1_000;

/** The packet rules of an installation, which are put back where somebody removes them. */
type WatchedRules = {
  /** Puts them in place, and looks after them from then on. */
  install(host: Omit<HostTableOptions, 'installation' | 'policies' | 'linksNow' | 'guards'>): Promise<void>;
  /** Looks after them no more. They stay. */
  stop(): Promise<void>;
};

/** What the rules are made of, and who must know that they are new. */
type RuleParts = { installation: number; log: Log; table: PolicyTable; known: KnownSandboxes; forwarding: Forwarding };

/**
 * Whoever reloads the host's own rules (`systemctl reload nftables`) begins, on most distributions, by removing all
 * that there are. Without ours a sandbox's packets would be judged by nobody.
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

/** Links of an installation that are there. */
function linksOf(installation: number): string[] {
  return readdirSync('/sys/class/net').filter(name => name.startsWith(`at${installation}-`));
}
