import { expect, test } from 'bun:test';
import {
  contains,
  coversName,
  isDomainPattern,
  isHostName,
  normalName,
  parseAddress,
  parseBlock,
  protectedRange,
  splitHostPort,
} from './network.ts';

test('addresses in every notation become their octets', () => {
  const hex = (text: string) => Buffer.from(parseAddress(text) ?? []).toString('hex');
  expect(hex('1.2.3.4')).toBe('01020304');
  expect(hex('2001:db8::1')).toBe('20010db8000000000000000000000001');
  expect(hex('::')).toBe('0'.repeat(32));
  expect(hex('::ffff:10.0.0.5')).toBe('00000000000000000000ffff0a000005');
  expect(hex('1:2:3:4:5:6:7:8')).toBe('00010002000300040005000600070008');
  for (const text of [
    '',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '0x7f000001',
    '2130706433',
    '127.1',
    'fe80::1%eth0',
    'example.com',
    ' 1.2.3.4',
  ])
    expect(parseAddress(text)).toBeUndefined();
});

test('blocks contain the addresses that share their first bits', () => {
  const holds = (block: string, address: string) => contains(parseBlock(block)!, parseAddress(address)!);
  expect(holds('10.1.0.0/16', '10.1.255.255')).toBe(true);
  expect(holds('10.1.0.0/16', '10.2.0.0')).toBe(false);
  expect(holds('10.1.2.3', '10.1.2.3')).toBe(true);
  expect(holds('10.1.2.3', '10.1.2.2')).toBe(false);
  expect(holds('128.0.0.0/1', '255.0.0.1')).toBe(true);
  expect(holds('0.0.0.0/0', '8.8.8.8')).toBe(true);
  expect(holds('203.0.113.8/29', '203.0.113.15')).toBe(true);
  expect(holds('203.0.113.8/29', '203.0.113.16')).toBe(false);
  expect(holds('2001:db8::/33', '2001:db8:7fff::')).toBe(true);
  expect(holds('2001:db8::/33', '2001:db8:8000::')).toBe(false);
  expect(holds('0.0.0.0/0', '::1')).toBe(false);
  for (const text of ['1.2.3.4/33', '1.2.3.4/', '1.2.3.4/-1', '::/129', '1.2.3.4/8/8', 'example.com/8'])
    expect(parseBlock(text)).toBeUndefined();
});

test('protected ranges are protected in every family', () => {
  const inside = [
    '0.0.0.0',
    '10.0.0.5',
    '100.64.0.1',
    '100.127.255.255',
    '127.0.0.1',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.0.1',
    '198.18.0.1',
    '198.19.255.255',
    '224.0.0.1',
    '255.255.255.255',
  ];
  const inside6 = [
    '::',
    '::1',
    '::ffff:8.8.8.8',
    '::ffff:10.0.0.5',
    '64:ff9b::a00:5',
    'fc00::1',
    'fd00::1',
    'fe80::1',
    'ff02::1',
    '2002:a00:5::1',
    '2001:0:1::',
  ];
  for (const address of [...inside, ...inside6])
    expect(`${address} ${protectedRange(parseAddress(address)!)}`).not.toBe(`${address} undefined`);
  for (const address of [
    '1.1.1.1',
    '100.63.255.255',
    '100.128.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    '2606:4700::1111',
  ]) {
    expect(protectedRange(parseAddress(address)!)).toBeUndefined();
  }
});

test('names are host names in ASCII that no address parser takes', () => {
  for (const name of [
    'example.com',
    'a',
    'xn--bcher-kva.example',
    '_dmarc.example.com',
    '1.example.com',
    'EXAMPLE.com',
  ])
    expect(isHostName(name)).toBe(true);
  for (const name of [
    '',
    '.',
    'a..b',
    '-a.com',
    'a-.com',
    '1.2.3.4',
    '127.1',
    '2130706433',
    '0x7f000001',
    '1.2.3.0x4',
    'a b',
    'a/b',
    'a:80',
    'bücher.example',
    `${'a'.repeat(64)}.com`,
    `${'a.'.repeat(127)}com`,
    '[::1]',
    'a\0b',
  ]) {
    expect(isHostName(name)).toBe(false);
  }
  expect(normalName('Example.COM.')).toBe('example.com');
  expect(normalName('example.com..')).toBeUndefined();
});

test('patterns cover what they say', () => {
  expect(coversName('example.com', 'example.com')).toBe(true);
  expect(coversName('example.com', 'a.example.com')).toBe(false);
  expect(coversName('*.example.com', 'a.b.example.com')).toBe(true);
  expect(coversName('*.example.com', 'example.com')).toBe(false);
  expect(coversName('*.example.com', 'badexample.com')).toBe(false);
  expect(coversName('*', 'anything.test')).toBe(true);
  expect(['*', '*.a.b', 'a.b'].every(isDomainPattern)).toBe(true);
  expect(['*.', '*a.b', 'a.*', '*.*.a', '1.2.3.4', ''].some(isDomainPattern)).toBe(false);
});

test('host and port are split', () => {
  expect(splitHostPort('a.b:80')).toEqual({ host: 'a.b', port: 80 });
  expect(splitHostPort('[2001:db8::1]:1080')).toEqual({ host: '2001:db8::1', port: 1080 });
  expect(splitHostPort('a.b')).toEqual({ host: 'a.b', port: undefined });
  expect(splitHostPort('a.b:0').port).toBeUndefined();
  expect(splitHostPort('a.b:65536').port).toBeUndefined();
});
