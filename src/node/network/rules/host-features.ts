import { readFileSync } from 'node:fs';
import { ifThere } from '../../../base/if-there.ts';
import { tryCommand } from '../../../base/process/command.ts';
import { closedTimeouts, forgetSoon } from './closed-flows.ts';

/** How kernels differ in what the packet rules use. */
export type HostFeatures = {
  /** The kernel counts connections by link (CONFIG_NFT_CONNLIMIT). */
  countsFlows: boolean;
  /** The kernel can forget some connections sooner than others once they are closed (CONFIG_NF_CONNTRACK_TIMEOUT). */
  forgetsClosed: boolean;
};

const trials = {
  countsFlows: `  set flows {
    type ifname
    size 16
    flags dynamic
  }
  chain trial {
    ct state new add @flows { iifname ct count over 10 } drop
  }
`,
  forgetsClosed: `${closedTimeouts(true)}${forgetSoon(true)}`,
};

/** Finds out by trying, in a network namespace that is gone afterwards. */
export async function findHostFeatures(): Promise<HostFeatures> {
  const loads = (trial: string) =>
    tryCommand(['unshare', '--net', 'nft', '-f', '-'], `table inet atoll-trial {\n${trial}}\n`).then(
      () => true,
      () => false,
    );
  const [countsFlows, forgetsClosed] = await Promise.all([loads(trials.countsFlows), loads(trials.forgetsClosed)]);
  return { countsFlows, forgetsClosed };
}

/** Most and fewest tracked connections of one sandbox: what programs that download and crawl need. */
const flowsOfOne = { max: 4096, min: 512 } as const;
/** This many sandboxes may take all they can without filling the host's table; a quarter of it stays the host's. */
const sandboxesAtLimit = 64;
const shareOfSandboxes = 0.75;
/** Assumed if the kernel does not say: its limit with 1 GiB of memory. */
const trackedAssumed = 65_536;

/** How many connections the host tracks in all. */
export function trackedMax(): number {
  const text = ifThere(() => readFileSync('/proc/sys/net/netfilter/nf_conntrack_max', 'utf8'), undefined);
  return text === undefined ? trackedAssumed : Number(text);
}

/** Connections of one sandbox that the host tracks, for a table of `tracked` in all. */
export function flowsPerSandbox(tracked: number): number {
  return Math.min(
    Math.max(Math.floor((tracked * shareOfSandboxes) / sandboxesAtLimit), flowsOfOne.min),
    flowsOfOne.max,
  );
}
