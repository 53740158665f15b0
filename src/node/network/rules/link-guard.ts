import { chainOfLink, ofSandboxes } from './link-table.ts';
import { tableOf } from './table-name.ts';
import { cString } from '../../native/libc.ts';
import { attribute, be32, flags, NetlinkError, type Message, type Netlink } from '../../native/netlink.ts';

// linux/netfilter/nfnetlink.h, nf_tables.h
const NFNL_MSG_BATCH_BEGIN = 16;
const NFNL_MSG_BATCH_END = 17;
const subsystem = 10;
const message = { newChain: 3, newRule: 6 } as const;
const NFPROTO_NETDEV = 5;
const NFT_GOTO = -4;
const ingressHook = 0;
const policyAccept = 1;
const chain = { table: 1, name: 3, hook: 4, policy: 5, type: 7 } as const;
const hook = { number: 1, priority: 2, device: 3 } as const;
const rule = { table: 1, chain: 2, expressions: 4 } as const;
const expression = { name: 1, data: 2 } as const;
const verdictRegister = 0;
const NLM_F_EXCL = 0x200;
const EEXIST = 17;

/**
 * Drops everything that comes in by a link and is not a sandbox's packet. The chain goes with the link; since Linux
 * 6.16 it stays, and applies to the next link of that name. Takes some ten µs.
 */
export function guardLink(netfilter: Netlink, installation: number, link: string): void {
  const table = cString(tableOf(installation));
  const name = cString(chainOfLink(link));
  const base = [
    attribute(chain.table, table),
    attribute(chain.name, name),
    attribute(chain.hook, [
      attribute(hook.number, be32(ingressHook)),
      attribute(hook.priority, be32(0)),
      attribute(hook.device, cString(link)),
    ]),
    attribute(chain.policy, be32(policyAccept)),
    attribute(chain.type, cString('filter')),
  ];
  const goto = [
    attribute(1, be32(verdictRegister)),
    attribute(2, [attribute(2, [attribute(1, be32(NFT_GOTO)), attribute(2, cString(ofSandboxes))])]),
  ];
  const only = [attribute(expression.name, cString('immediate')), attribute(expression.data, goto)];
  const rules = [
    attribute(rule.table, table),
    attribute(rule.chain, name),
    attribute(rule.expressions, [attribute(1, only)]),
  ];
  const edge = (type: number): Message => ({ type, flags: 0, body: header(0, subsystem) });
  const change = (type: number, more: number, parts: Buffer[]): Message => ({
    type: (subsystem << 8) | type,
    flags: flags.ack | flags.create | more,
    body: Buffer.concat([header(NFPROTO_NETDEV, 0), ...parts]),
  });
  const changes = [change(message.newChain, NLM_F_EXCL, base), change(message.newRule, 0, rules)];
  try {
    netfilter.exchange('guarding the link of a sandbox', [
      edge(NFNL_MSG_BATCH_BEGIN),
      ...changes,
      edge(NFNL_MSG_BATCH_END),
    ]);
  } catch (error) {
    if (!(error instanceof NetlinkError && error.errno === EEXIST)) throw error;
  }
}

/** struct nfgenmsg. */
function header(family: number, resource: number): Buffer {
  return Buffer.of(family, 0, resource >> 8, resource & 255);
}
