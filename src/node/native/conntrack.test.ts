import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { parseAddress } from '../../protocol/network/network.ts';
import { forgetFlows, isRedirected, type Flow } from './conntrack.ts';
import { attribute, families, flags, openNetlink, type Netlink } from './netlink.ts';

/** Networks reserved for documentation (RFC 5737, RFC 3849): nobody on this machine uses their addresses. */
const [first, second, third] = ['192.0.2.11', '192.0.2.12', '192.0.2.13'];
const [v6, otherV6] = ['2001:db8::11', '2001:db8::12'];
const elsewhere = { 4: '198.51.100.7', 6: '2001:db8:1::7' };

let netfilter: Netlink;
beforeAll(() => void (netfilter = openNetlink(families.netfilter)));
afterEach(() => forgetFlows(netfilter, new Set([first, second, third, v6, otherV6])));
afterAll(() => netfilter.close());

const octets = (address: string) => parseAddress(address) ?? new Uint8Array();
const number = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const port = (value: number) => Buffer.of(value >> 8, value & 255);

/** Makes the kernel know a conversation over UDP, as if it had seen one (ctnetlink's IPCTNL_MSG_CT_NEW). */
function know(source: string, flow: { port: number; sourcePort: number }, redirected = false): void {
  const isV4 = !source.includes(':');
  const destination = elsewhere[isV4 ? 4 : 6];
  const [sourceKey, destinationKey] = isV4 ? [1, 2] : [3, 4];
  const tuple = (kind: number, from: string, to: string, fromPort: number, toPort: number) =>
    attribute(kind, [
      attribute(1, [attribute(sourceKey, octets(from)), attribute(destinationKey, octets(to))]),
      attribute(2, [attribute(1, Buffer.of(17)), attribute(2, port(fromPort)), attribute(3, port(toPort))]),
    ]);
  const proxy = octets('198.51.100.9');
  const body = Buffer.concat([
    Buffer.of(isV4 ? 2 : 10, 0, 0, 0),
    tuple(1, source, destination, flow.sourcePort, flow.port),
    tuple(2, destination, source, flow.port, flow.sourcePort),
    attribute(7, number(60)),
    ...(redirected ? [attribute(13, [attribute(1, proxy), attribute(2, proxy)])] : []),
  ]);
  netfilter.exchange('a conversation', [{ type: 1 << 8, flags: flags.ack | flags.create, body }]);
}

/** How many conversations of an address the kernel knows. */
async function known(source: string): Promise<number> {
  const family = source.includes(':') ? 10 : 2;
  const body = Buffer.of(family, 0, 0, 0);
  const listed: Buffer[] = [];
  for await (const answers of netfilter.dump('conversations', { type: (1 << 8) | 1, body }))
    listed.push(...answers.map(answer => answer.body));
  return listed.filter(one => one.includes(octets(source))).length;
}

const flow = (sourcePort: number, changes: Partial<Flow> = {}): Flow => ({
  protocol: 'udp',
  destination: octets(elsewhere[4]),
  port: 53,
  sourcePort,
  ...changes,
});

test('a conversation that the proxy carries differs from one that passes unchanged', () => {
  know(first, { port: 53, sourcePort: 40_001 }, true);
  know(first, { port: 53, sourcePort: 40_002 });
  expect(isRedirected(netfilter, first, flow(40_001))).toBe(true);
  expect(isRedirected(netfilter, first, flow(40_002))).toBe(false);
});

test('the conversations of others, and unknown ones, do not count as carried', () => {
  know(first, { port: 53, sourcePort: 40_001 }, true);
  for (const other of [
    flow(40_003),
    flow(40_001, { port: 54 }),
    flow(40_001, { protocol: 'tcp' }),
    flow(40_001, { protocol: 'other' }),
    flow(40_001, { destination: octets('198.51.100.8') }),
    flow(40_001, { destination: octets(elsewhere[6]) }),
  ])
    expect(isRedirected(netfilter, first, other)).toBe(false);
  expect(isRedirected(netfilter, second, flow(40_001))).toBe(false);
});

test('the conversations of these addresses are forgotten, and no others', async () => {
  const all = [first, second, third, v6, otherV6];
  const counts = async () => {
    const found: number[] = [];
    for (const address of all) found.push(await known(address));
    return found;
  };
  for (const address of all) for (const sourcePort of [40_001, 40_002]) know(address, { port: 53, sourcePort });
  expect(await counts()).toEqual([2, 2, 2, 2, 2]);
  await forgetFlows(netfilter, new Set());
  expect(await counts()).toEqual([2, 2, 2, 2, 2]);
  await forgetFlows(netfilter, new Set([first]));
  expect(await counts()).toEqual([0, 2, 2, 2, 2]);
  await forgetFlows(netfilter, new Set([v6]));
  expect(await counts()).toEqual([0, 2, 2, 0, 2]);
  await forgetFlows(netfilter, new Set([second, third, otherV6]));
  expect(await counts()).toEqual([0, 0, 0, 0, 0]);
});

test('however many there are, all are forgotten', async () => {
  for (let index = 0; index < 205; index++) know(first, { port: 53, sourcePort: 41_000 + index });
  know(second, { port: 53, sourcePort: 41_000 });
  expect(await known(first)).toBe(205);
  await forgetFlows(netfilter, new Set([first]));
  expect([await known(first), await known(second)]).toEqual([0, 1]);
});
