import { openNetlink, families } from '../../src/node/native/netlink.ts';
import { chainsOf } from '../../src/node/network/rules/policy-chains.ts';
import { createPolicyTable } from '../../src/node/network/rules/policy-table.ts';
import { compilePolicy } from '../../src/protocol/network/egress-policy.ts';
import { findHostFeatures, flowsPerSandbox, trackedMax } from '../../src/node/network/rules/host-features.ts';
import { proxyCount } from '../../src/node/network/egress/proxies/proxies.ts';
import { slotOf } from '../../src/node/layout.ts';
import { readFileSync } from 'node:fs';
import { timeEach } from '../measure/statistics.ts';
import { blocks } from './blocks.ts';

// Installs rules for many sandboxes in the network namespace that it is started in, and prints the cost as JSON.

const [count = 500, blocksEach = 20] = process.argv.slice(2).map(Number);
const installation = 15;
const table = createPolicyTable(installation, openNetlink(families.netfilter));
const policyOf = (number: number, size: number) =>
  chainsOf(compilePolicy({ internetAccess: false, allowOut: blocks(number, size) }), { forwardDns: false });

await table.install({
  resolvers: ['8.8.8.8'],
  proxyNeeds: { nameServers: [], edgePort: undefined },
  proxies: proxyCount(),
  flowsMax: flowsPerSandbox(trackedMax()),
  ipv6: false,
  features: await findHostFeatures(),
  linksNow: [],
  guards: { ways_out: [], ways_out_v6: [] },
});
const before = kernelMiB();
const added = await timeEach(count, number => table.assign(slotOf(installation, number), policyOf(number, blocksEach)));
const memoryMiB = kernelMiB() - before;
// Each time with different rules, beside those of all the others.
const updated = await timeEach(30, number =>
  table.assign(slotOf(installation, 0), policyOf(2000 + number, blocksEach)),
);
const removed = await timeEach(count, async number => table.withdraw(slotOf(installation, number)));
process.stdout.write(JSON.stringify({ added, updated, removed, memoryMiB }));
process.exit(0);

/** Memory that the kernel holds for itself and can't give back. */
function kernelMiB(): number {
  const facts = readFileSync('/proc/meminfo', 'utf8');
  return ['SUnreclaim', 'Percpu', 'VmallocUsed'].reduce(
    (sum, name) => sum + Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(facts)?.[1]) / 1024,
    0,
  );
}
