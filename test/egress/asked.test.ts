import { expect } from 'bun:test';
import { testUnless } from '../support/skip.ts';
import { closedTimeouts, forgetAsked } from '../../src/node/network/rules/closed-flows.ts';
import { findHostFeatures } from '../../src/node/network/rules/host-features.ts';

const { forgetsClosed } = await findHostFeatures();
const testTimes = testUnless(forgetsClosed ? undefined : 'the kernel keeps all connections for as long');

testTimes('what name servers are asked is forgotten soon, by IPv6 too, and other packets are not', () => {
  const rules = `table inet atoll-asked {
  set v4 { type ipv4_addr . inet_service; elements = { 127.0.0.1 . 53 }; }
  set v6 { type ipv6_addr . inet_service; elements = { ::1 . 53 }; }
${closedTimeouts(false)}  chain output {
    type filter hook output priority filter; policy accept;
${forgetAsked({ v4: '@v4', v6: '@v6' }, true)}  }
}
`;
  const script = `set -e
ip link set lo up
nft -f - <<< "$1"
for place in 127.0.0.1/53 ::1/53 127.0.0.1/54; do echo asked > /dev/udp/$place; done
cat /proc/net/nf_conntrack`;
  const { stdout, stderr } = Bun.spawnSync(['unshare', '--net', 'bash', '-c', script, 'bash', rules]);
  expect(stderr.toString()).toBe('');
  // The remaining time stands after the protocol's number.
  const left = [...stdout.toString().matchAll(/ udp +17 (\d+) src=(\S+) .* dport=(\d+) \[/g)].map(
    ([, seconds, from, port]) => [from, port, Number(seconds) <= 5],
  );
  expect(left.toSorted()).toEqual([
    ['0000:0000:0000:0000:0000:0000:0000:0001', '53', true],
    ['127.0.0.1', '53', true],
    ['127.0.0.1', '54', false],
  ]);
});
