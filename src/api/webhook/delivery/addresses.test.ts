import { expect, test } from 'bun:test';
import { networkInterfaces } from 'node:os';
import { isOfMachine, parseAddress } from '../../../protocol/network/network.ts';
import { allowedAddresses } from './addresses.ts';

test('an address in a URL is either the one that is tried, or refused', async () => {
  expect(await allowedAddresses(new URL('http://93.184.215.14/'), false)).toEqual(['93.184.215.14']);
  expect(await allowedAddresses(new URL('http://[2606:2800:21f::1]:8080/'), false)).toEqual(['2606:2800:21f::1']);
  expect(await allowedAddresses(new URL('http://127.0.0.1/'), true)).toEqual(['127.0.0.1']);
  for (const host of [
    '127.0.0.1',
    '169.254.169.254',
    '[::1]',
    '[::ffff:10.0.0.1]',
    '[64:ff9b::a00:1]',
    '[2002:a00:1::]',
    'localhost',
  ]) {
    await expect(allowedAddresses(new URL(`http://${host}/`), false)).rejects.toThrow('private networks');
  }
});

test('public addresses of the machine are its own, however they are written', () => {
  const ofMachine = (address: string) => isOfMachine(parseAddress(address) ?? new Uint8Array(), interfaces);
  const entry = { netmask: '', mac: '', internal: false, cidr: null };
  const interfaces: ReturnType<typeof networkInterfaces> = {
    eth0: [
      { ...entry, family: 'IPv4', address: '93.184.215.14' },
      { ...entry, family: 'IPv6', address: '2606:2800:21f::1', scopeid: 0 },
    ],
  };
  expect(['93.184.215.14', '2606:2800:21F:0:0:0:0:1', '93.184.215.15'].map(ofMachine)).toEqual([true, true, false]);
});
