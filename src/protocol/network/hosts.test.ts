import { expect, test } from 'bun:test';
import { type Destination, type RoutingHeaders, destinationOf, firstLabelOf } from './hosts.ts';

const none: RoutingHeaders = {
  e2bSandboxId: undefined,
  e2bSandboxPort: undefined,
  svcSandboxId: undefined,
  svcSandboxPort: undefined,
};

function at(host: string | undefined, headers: Partial<RoutingHeaders> = {}): Destination {
  return destinationOf(host, { ...none, ...headers });
}

const sandbox = (sandboxId: string, port: number, by: 'host' | 'headers' = 'host') =>
  ({ kind: 'sandbox', sandboxId, port, by }) as const;

test('a numbered label is a port of a sandbox', () => {
  expect(at('3000-ixyz.example.com')).toEqual(sandbox('ixyz', 3000));
  expect(at('49983-ixyz.localhost:3000')).toEqual(sandbox('ixyz', 49983));
  for (const port of [1, 65535]) expect(at(`${port}-ixyz.example.com`)).toEqual(sandbox('ixyz', port));
  expect(at('80-I1A.Example.COM')).toEqual(sandbox('i1a', 80));
  expect(at('8080-ixyz-6532622b.example.com')).toEqual(sandbox('ixyz', 8080));
  expect(at('8080-ixyz-a-b-c.example.com')).toEqual(sandbox('ixyz', 8080));
});

test('on a numbered label the headers are ignored', () => {
  expect(at('3000-ixyz.example.com', { e2bSandboxId: 'other', e2bSandboxPort: '1' })).toEqual(sandbox('ixyz', 3000));
  expect(at('3000-ixyz.example.com', { e2bSandboxPort: 'junk' })).toEqual(sandbox('ixyz', 3000));
});

test('a malformed numbered label is refused', () => {
  for (const host of ['3000-ixyz', '3000-ixyz:80', '3000-.example.com', '3000-a_b.example.com', '0-ixyz.example.com']) {
    expect(at(host).kind).toBe('invalid');
  }
  for (const host of ['65536-ixyz.example.com', '123456789012345678901-ixyz.example.com', '3000-ä.example.com']) {
    expect(at(host).kind).toBe('invalid');
  }
});

test('other hosts without routing headers are the API', () => {
  for (const host of [undefined, '', 'localhost:3000', '127.0.0.1', '[::1]:3000', 'api.example.com', 'my-box.lan']) {
    expect(at(host)).toEqual({ kind: 'api' });
  }
});

test('other hosts go where the headers say', () => {
  for (const host of [undefined, 'localhost:3000', '10.0.0.1', '[::1]', 'sandbox.example.com']) {
    expect(at(host, { e2bSandboxId: 'ixyz', e2bSandboxPort: '80' })).toEqual(sandbox('ixyz', 80, 'headers'));
    expect(at(host, { svcSandboxId: 'ixyz', svcSandboxPort: '80' })).toEqual(sandbox('ixyz', 80, 'headers'));
  }
});

test('only the Svc- family defaults the port', () => {
  expect(at('localhost', { svcSandboxId: 'ixyz' })).toEqual(sandbox('ixyz', 49983, 'headers'));
  expect(at('localhost', { e2bSandboxId: 'ixyz' }).kind).toBe('invalid');
});

test('the families are aliases and may not contradict each other', () => {
  expect(at('localhost', { svcSandboxId: 'ixyz', e2bSandboxPort: '80' })).toEqual(sandbox('ixyz', 80, 'headers'));
  expect(at('localhost', { e2bSandboxId: 'ixyz', svcSandboxPort: '80' })).toEqual(sandbox('ixyz', 80, 'headers'));
  expect(at('localhost', { e2bSandboxId: 'a', svcSandboxId: 'b', e2bSandboxPort: '80' }).kind).toBe('invalid');
  expect(at('localhost', { e2bSandboxId: 'a', svcSandboxPort: '81', e2bSandboxPort: '80' }).kind).toBe('invalid');
});

test('incomplete and malformed headers are refused', () => {
  const wrong: Partial<RoutingHeaders>[] = [
    { e2bSandboxPort: '80' },
    { svcSandboxPort: '80' },
    { e2bSandboxId: '', e2bSandboxPort: '80' },
    { e2bSandboxId: 'ixyz', e2bSandboxPort: '' },
    { e2bSandboxId: 'IXYZ', e2bSandboxPort: '80' },
    { e2bSandboxId: 'a-b', e2bSandboxPort: '80' },
    { e2bSandboxId: 'ixyz', e2bSandboxPort: '80.5' },
    { e2bSandboxId: 'ixyz', e2bSandboxPort: '-1' },
    { e2bSandboxId: 'ixyz', e2bSandboxPort: '+80' },
    { e2bSandboxId: 'ixyz', e2bSandboxPort: '0x50' },
    { e2bSandboxId: 'ixyz', e2bSandboxPort: '65536' },
    { e2bSandboxId: 'ixyz, other', e2bSandboxPort: '80' },
  ];
  for (const headers of wrong) expect(at('localhost', headers).kind).toBe('invalid');
});

test('the first label', () => {
  expect(firstLabelOf('Sandbox.example.com')).toBe('sandbox');
  expect(firstLabelOf('localhost:3000')).toBe('localhost');
  expect(firstLabelOf('')).toBe('');
});
