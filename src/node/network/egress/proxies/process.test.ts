import { expect, test } from 'bun:test';
import { makeAuthority } from '../../../../base/crypto/certificate.ts';
import { messageOf } from '../../../../base/error.ts';
import { silentLog } from '../../../../base/telemetry/log.ts';
import type { EgressPolicy } from '../../../../protocol/network/network.ts';
import type { ProxySettings } from './messages.ts';
import { startProxy } from './process.ts';

const policy: EgressPolicy = { internetAccess: false, allowOut: ['a.test'] };

test('a proxy that could not start because of a taken port takes policies once that is free', async () => {
  const taking = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  const free = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } });
  const settings: ProxySettings = {
    installation: 0,
    listenAddress: '127.0.0.1',
    port: free.port,
    resolverPort: taking.port,
    nameServers: [],
    resolvers: [],
    platform: undefined,
    opensAllowedNames: false,
    roots: '',
    authority: makeAuthority('test', 1),
    userId: 65_534,
  };
  free.stop();
  const proxy = startProxy({ settings, log: silentLog, onDenied() {} }, { startMs: 4_000, laterMs: 1_000 });
  try {
    expect(await proxy.set(1, policy).catch(messageOf)).toContain(`port ${settings.resolverPort}`);
    expect(proxy.knows(1)).toBe(false);
    taking.stop();
    while ((await proxy.set(1, policy).catch(messageOf)) !== undefined);
    expect(proxy.knows(1)).toBe(true);
  } finally {
    await proxy.stop();
  }
}, 60_000);
