import { tableOf } from './table-name.ts';
import { cString } from '../../native/libc.ts';
import { ofSandboxes } from './link-table.ts';
import {
  attribute,
  attributesIn,
  be32,
  flags,
  NetlinkError,
  type Message,
  type Netlink,
} from '../../native/netlink.ts';

// linux/netfilter/nfnetlink.h, nf_tables.h
const NFNL_MSG_BATCH_BEGIN = 16;
const NFNL_MSG_BATCH_END = 17;
const subsystem = 10;
const message = {
  getChain: 4,
  deleteChain: 5,
  deleteSet: 11,
  newElement: 12,
  getElement: 13,
  deleteElement: 14,
} as const;
const NFPROTO_INET = 1;
const NFPROTO_NETDEV = 5;
const ENOENT = 2;
const EBUSY = 16;
const NFT_GOTO = -4;
const list = { table: 1, set: 2, elements: 3 } as const;
const element = { key: 1, data: 2, expression: 7 } as const;
const dataValue = 1;
const dataVerdict = 2;
const interfaceNameBytes = 16;
const chainUses = 6;

/** The chains of the host table that packets reach first. */
const entries = ['prerouting', 'destination_nat', 'input', 'forward', 'output', 'source_nat', 'postrouting'];

/** The maps of the host table that decide about packets of a link. */
export const verdictMaps = ['outgoing', 'incoming', 'redirect'] as const;
/** The name of a verdict map. */
export type VerdictMap = (typeof verdictMaps)[number];

/** A change of the chain that judges a link's packets. */
type VerdictChange = {
  map: VerdictMap;
  interfaceName: string;
  /** The chain that decided until now; undefined: there is no entry. */
  from: string | undefined;
  /** The chain that decides from now on; undefined: no entry. */
  to: string | undefined;
};

/** Changes which chains decide about links, all at once. Takes some ten µs; `nft` would take milliseconds. */
export function changeVerdicts(netfilter: Netlink, installation: number, changes: VerdictChange[]): void {
  const messages = changes.flatMap(({ map, interfaceName, from, to }) => {
    if (from === to) return [];
    const key = attribute(element.key, [attribute(dataValue, keyOf(interfaceName))]);
    const removed =
      from !== undefined
        ? [elementMessage(message.deleteElement, flags.ack, installation, `${map}_by_link`, [key])]
        : [];
    const verdict = () => attribute(dataVerdict, [attribute(1, be32(NFT_GOTO)), attribute(2, cString(to ?? ''))]);
    const added =
      to !== undefined
        ? [
            elementMessage(message.newElement, flags.ack | flags.create, installation, `${map}_by_link`, [
              key,
              attribute(element.data, [verdict()]),
            ]),
          ]
        : [];
    return [...removed, ...added];
  });
  if (messages.length > 0) change(netfilter, 'changing the packet rules of a sandbox', messages);
}

/** Removes chains, with their rules, and sets. Nothing may refer to them any more. */
export function removeObjects(
  netfilter: Netlink,
  installation: number,
  { chains, sets }: { chains: string[]; sets: string[] },
): void {
  const removal = (type: number, nameAttribute: number, name: string): Message => ({
    type: (subsystem << 8) | type,
    flags: flags.ack,
    body: Buffer.concat([
      header(NFPROTO_INET, 0),
      attribute(1, cString(tableOf(installation))),
      attribute(nameAttribute, cString(name)),
    ]),
  });
  const messages = [
    ...chains.map(name => removal(message.deleteChain, 3, name)),
    ...sets.map(name => removal(message.deleteSet, 2, name)),
  ];
  if (messages.length > 0) change(netfilter, 'removing packet rules', messages);
}

/** Sends the messages as one transaction. */
function change(netfilter: Netlink, what: string, messages: Message[]): void {
  const edge = (type: number): Message => ({ type, flags: 0, body: header(0, subsystem) });
  netfilter.exchange(what, [edge(NFNL_MSG_BATCH_BEGIN), ...messages, edge(NFNL_MSG_BATCH_END)]);
}

/** How many packets of a link the rules have refused so far; undefined if somebody has removed the rules. */
export function refusedPackets(netfilter: Netlink, installation: number, interfaceName: string): number | undefined {
  const key = attribute(element.key, [attribute(dataValue, keyOf(interfaceName))]);
  const question = elementMessage(message.getElement, flags.ack, installation, 'refused', [key]);
  const answers = ifKernelHas(() => netfilter.exchange('reading a counter of refused packets', [question]));
  if (!answers) return undefined;
  const [answer] = answers;
  const elements = answer && attributesIn(answer.body.subarray(4)).get(list.elements);
  const found = elements && attributesIn(elements).get(1);
  const expression = found && attributesIn(found).get(element.expression);
  const counter = expression && attributesIn(expression).get(2);
  return Number((counter && attributesIn(counter).get(2))?.readBigUInt64BE() ?? 0);
}

/**
 * Whether the rules of an installation are in force: reloading the host's own rules may remove all. A table alone
 * proves nothing, because declaring a policy makes one, and neither does a chain: `nft flush table` leaves it without
 * its rules.
 */
export function rulesAreThere(netfilter: Netlink, installation: number): boolean {
  const question = (family: number, chain: string): Message => ({
    type: (subsystem << 8) | message.getChain,
    flags: flags.ack,
    body: Buffer.concat([
      header(family, 0),
      attribute(1, cString(tableOf(installation))),
      attribute(3, cString(chain)),
    ]),
  });
  const wanted = [...entries.map(chain => [NFPROTO_INET, chain] as const), [NFPROTO_NETDEV, ofSandboxes] as const];
  return wanted.every(([family, chain]) => {
    const answers = ifKernelHas(() => netfilter.exchange('looking for the packet rules', [question(family, chain)]));
    const [answer] = answers ?? [];
    // The count includes its rules, and those that lead to it.
    const uses = answer && attributesIn(answer.body.subarray(4)).get(chainUses)?.readUInt32BE();
    return (uses ?? 0) > 0;
  });
}

/** Answers what `work` does; undefined if the kernel says that its object does not exist. */
export function ifKernelHas<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (kernelLacks(error)) return undefined;
    throw error;
  }
}

/** Whether the kernel has said that an object does not exist. */
export const kernelLacks = (error: unknown): boolean => error instanceof NetlinkError && error.errno === ENOENT;

/** Whether the kernel has said that something else still refers to an object that was to be removed. */
export const kernelUses = (error: unknown): boolean => error instanceof NetlinkError && error.errno === EBUSY;

function elementMessage(
  type: number,
  messageFlags: number,
  installation: number,
  set: string,
  parts: Buffer[],
): Message {
  const body = Buffer.concat([
    header(NFPROTO_INET, 0),
    attribute(list.table, cString(tableOf(installation))),
    attribute(list.set, cString(set)),
    attribute(list.elements, [attribute(1, parts)]),
  ]);
  return { type: (subsystem << 8) | type, flags: messageFlags, body };
}

/** struct nfgenmsg. */
function header(family: number, resource: number): Buffer {
  return Buffer.of(family, 0, resource >> 8, resource & 255);
}

function keyOf(interfaceName: string): Buffer {
  const key = Buffer.alloc(interfaceNameBytes);
  key.write(interfaceName, 'latin1');
  return key;
}
