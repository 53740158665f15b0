import { expect, test } from 'bun:test';
import { isDomainPattern, isHostName, parseBlock } from './network-address.ts';

test('addresses and blocks of both families', () => {
  expect(parseBlock('1.2.3.4')).toEqual({ address: '1.2.3.4', bits: 32, version: 4 });
  expect(parseBlock('10.0.0.0/8')).toEqual({ address: '10.0.0.0', bits: 8, version: 4 });
  expect(parseBlock('::/0')).toEqual({ address: '::', bits: 0, version: 6 });
  expect(parseBlock('2001:db8::1')).toEqual({ address: '2001:db8::1', bits: 128, version: 6 });
  for (const text of ['', '1.2.3', '1.2.3.4.5', '256.1.1.1', '01.2.3.4', '1.2.3.4/', '1.2.3.4/33', '1.2.3.4/-1', '1.2.3.4/1/2', '::1/129', 'fe80::1%eth0', '0x7f.1', '2130706433', ' 1.2.3.4']) {
    expect({ text, block: parseBlock(text) }).toEqual({ text, block: null });
  }
});

test('host names and patterns', () => {
  for (const name of ['example.com', 'EXAMPLE.com', 'a.b.c.d', 'localhost', 'xn--bcher-kva.example', '_dmarc.example.com']) expect(isHostName(name)).toBe(true);
  for (const name of ['', '.', 'a..b', 'example.com.', '-a.com', 'a-.com', 'a b.com', '1.2.3.4', 'a.1', 'ü.de', `${'a'.repeat(64)}.com`, `${'a.'.repeat(130)}com`]) {
    expect({ name, is: isHostName(name) }).toEqual({ name, is: false });
  }
  for (const pattern of ['*', '*.example.com', 'example.com']) expect(isDomainPattern(pattern)).toBe(true);
  for (const pattern of ['**', '*.', '*.*.com', 'a.*.com', '*example.com', '*.1.2.3.4']) expect(isDomainPattern(pattern)).toBe(false);
});
