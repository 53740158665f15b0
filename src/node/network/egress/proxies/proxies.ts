import { cpus } from 'node:os';
import { startProxy, type Proxy, type ProxyOptions } from './process.ts';

/** Most processes: each takes memory of its own. */
const proxiesMax = 8;
const proxiesMin = 2;

/** How many egress proxies a machine has: one per core. */
export function proxyCount(): number {
  return Math.min(Math.max(cpus().length, proxiesMin), proxiesMax);
}

/** Which proxy carries the connections of a slot. */
export function proxyOf(slot: number, count: number): number {
  return slot % count;
}

/**
 * Several egress proxies, each for some of the slots: a failure of one does not affect the sandboxes of the others.
 * They listen at consecutive ports.
 */
export function startProxies(count: number, { settings, ...options }: ProxyOptions): Proxy {
  const proxies = Array.from({ length: count }, (_, index) =>
    startProxy({
      ...options,
      settings: { ...settings, port: settings.port + index, resolverPort: settings.resolverPort + index },
    }),
  );
  const of = (slot: number) => proxies[proxyOf(slot, count)] as Proxy;
  return {
    knows: slot => of(slot).knows(slot),
    set: (slot, policy) => of(slot).set(slot, policy),
    remove: slot => of(slot).remove(slot),
    stop: async () => void (await Promise.all(proxies.map(proxy => proxy.stop()))),
  };
}
