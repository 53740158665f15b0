import { expect, test } from 'bun:test';
import { verdictOnHost } from './verdict.ts';

test('an address follows the address rules, a name the rules that name it, and otherwise its address', () => {
  const closed = { internetAccess: true, denyOut: ['0.0.0.0/0'] };
  const cases = [
    [{ internetAccess: true }, 'example.com', 'passes'],
    [{ internetAccess: true }, '10.0.0.1', 'denied'],
    [{ internetAccess: false }, 'example.com', 'denied'],
    [{ internetAccess: true, denyOut: ['192.0.2.0/24'] }, '192.0.2.7', 'denied'],
    [{ internetAccess: true, denyOut: ['192.0.2.0/24'] }, 'example.com', 'depends'],
    [closed, 'example.com', 'denied'],
    [{ ...closed, allowOut: ['*.example.com'] }, 'a.example.com', 'passes'],
    [{ ...closed, allowOut: ['*.example.com'] }, 'example.com', 'denied'],
    [{ ...closed, allowOut: ['8.8.8.8'] }, 'example.com', 'depends'],
    [{ ...closed, allowOut: ['8.8.8.8'] }, '8.8.8.8', 'passes'],
    [{ internetAccess: true }, '2606:4700::1111', 'passes'],
    [{ internetAccess: true }, '::ffff:8.8.8.8', 'denied'],
    [{ internetAccess: true }, '64:ff9b::808:808', 'denied'],
    [{ internetAccess: true, allowOut: ['fd00::/8'] }, 'fd00:ec2::254', 'denied'],
    [{ internetAccess: true, denyOut: ['2606:4700::/32'] }, '2606:4700::1111', 'denied'],
    [closed, '2606:4700::1111', 'denied'],
    [{ ...closed, allowOut: ['2606:4700::/32'] }, '2606:4700::1111', 'passes'],
    [{ internetAccess: true, egressProxy: { address: 'proxy.test:1080' } }, '2606:4700::1111', 'denied'],
    [{ internetAccess: true, headerRules: { 'a.test': {} } }, '2606:4700::1111', 'depends'],
  ] as const;
  for (const [policy, host, verdict] of cases)
    expect({ host, ...verdictOnHost(structuredClone(policy) as never, host) }).toMatchObject({ host, verdict });
  expect(() => verdictOnHost({ internetAccess: true }, 'not a host')).toThrow('neither an address nor');
});
