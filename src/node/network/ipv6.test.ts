import { expect, test } from 'bun:test';
import { addressText, parseAddress } from '../../protocol/network/network.ts';
import { waysOutV6 } from './ipv6.ts';

const zero = '0'.repeat(32);
const row = (destination: string, length: string, flags: string, name: string) =>
  `${destination} ${length} ${zero} 00 ${zero} 00000400 00000001 00000000 ${flags} ${name}`;
const octets = (address: string) => Buffer.from(parseAddress(address)!).toString('hex');

test('the ways out by IPv6 are those to everything or to a public network', () => {
  expect(
    waysOutV6(
      [
        row(zero, '00', '00000003', 'eth0'),
        row(octets('2001:db8::'), '20', '00000001', 'eth1'),
        row(octets('fd00::'), '40', '00000001', 'lan0'),
        row(octets('fe80::'), '40', '00000001', 'eth2'),
        row(octets('ff00::'), '08', '00000001', 'eth3'),
        '',
      ].join('\n'),
    ),
  ).toEqual(['eth0', 'eth1']);
});

test('routes that refuse, own addresses and links of sandboxes are no ways out', () => {
  const rows = [
    row(zero, '00', '00200200', 'lo'),
    row(zero, '00', '00000200', 'eth0'),
    row(octets('2001:db8::2'), '80', '80200001', 'eth0'),
    row(octets('2001:db8::'), '40', '00000001', 'at0-1'),
  ];
  expect(waysOutV6(rows.join('\n'))).toEqual([]);
  expect(waysOutV6('')).toEqual([]);
});

test('octets are written in the usual notation', () => {
  for (const address of ['1.2.3.4', '::', '::1', '2001:db8::1', 'fda7:110:5b3c:f::1:0', 'fe80::a0:11ff:fe00:22'])
    expect(addressText(parseAddress(address)!)).toBe(address);
});
