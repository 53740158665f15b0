import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { slotOf } from '../../src/node/layout.ts';
import {
  addresses,
  addressesV6,
  hostPublicV6,
  hostileServer,
  silentServer,
  uplinkV6,
  victimAddressesV6,
} from '../egress/support/addresses.ts';
import { startLab, type Lab } from '../egress/support/lab.ts';
import { links } from './support/network/links.ts';
import { noteVisitors } from './support/network/visitors.ts';
import { ipv6Attempts, policiesV6, type AttemptV6 } from './support/network/ipv6.ts';
import { attackWall } from './support/wall.ts';

// The attempts of network.test.ts on a host with IPv6: what a link carries besides proper packets, and each way past a
// policy or to the host that IPv6 opens. Observed from outside in the same way.

const preludes = ['prelude.py', 'prelude-v6.py']
  .map(name => readFileSync(join(import.meta.dir, 'support/network', name), 'utf8'))
  .join('\n');
/** The other table's attempts on the link, on a link that carries IPv6. */
const onLink = links.filter(({ name }) => !/mapped address|switched on/.test(name));

let lab: Lab;
let neighbour: string;
const sandboxes = new Map<AttemptV6['policy'], string>();

beforeAll(async () => {
  lab = await startLab({ ipv6: true });
  neighbour = await lab.create({ internetAccess: true });
  await lab.python(neighbour, noteVisitors('AF_INET6', '::'));
}, 120_000);
afterAll(() => lab.dispose(), 120_000);

test('what an open policy lets through is seen: the attempts are able, and the watch is awake', async () => {
  const sandbox = await lab.create({ internetAccess: true });
  for (const program of [
    'tcp6(OTHER6, 7000)',
    'udp6(OTHER6, 7000)',
    'ping6(OTHER6)',
    'raw6(OTHER6, udp_bytes(OTHER6), 17)',
    'frame6(ip6(udp_bytes(OTHER6), 17, SELF6, OTHER6))',
  ]) {
    lab.watch([]);
    expect((await attemptIn(sandbox, program)).exitCode).toBe(0);
    expect(`${program}: ${(await lab.strays()) > 0}`).toBe(`${program}: true`);
  }
  await lab.kill(sandbox);
}, 60_000);

attackWall({ name: 'network by IPv6', atLeast: 400, every: 4, timeoutMs: 60_000 }, [
  ...onLink.map(({ name, program }) => [`on a link with IPv6, ${name}`, () => attack('names', program)] as const),
  ...ipv6Attempts({
    host: { uplink: uplinkV6.host, public: hostPublicV6 },
    router: uplinkV6.internet,
    victims: victimAddressesV6,
  }).map(({ policy, name, program }) => [`${policy}, ${name}`, () => attack(policy, program)] as const),
]);

test('the other sandbox was not reached by any of them', async () => {
  expect(await attemptIn(neighbour, "tcp6('::1', 7000)")).toMatchObject({ exitCode: 0 });
  expect((await lab.run(neighbour, 'cat /tmp/visited')).stdout).toMatch(/^connection \('::1', \d+, 0, 0\)\n$/);
});

test('the host has no neighbour on a link but those that it put there', () => {
  const entries = lab
    .inHost('ip', 'neigh', 'show')
    .split('\n')
    .filter(line => / dev at\d+-/.test(line));
  expect(entries.length).toBeGreaterThan(0);
  expect(entries.filter(line => !/^(169\.254\.0\.21|fda7:110:5b3c::21) .*PERMANENT/.test(line))).toEqual([]);
});

async function attack(policy: AttemptV6['policy'], program: string): Promise<void> {
  const sandbox = sandboxes.get(policy) ?? (await lab.create(policiesV6[policy].policy));
  sandboxes.set(policy, sandbox);
  await lab.visits();
  lab.watch([...policiesV6[policy].permitted, ...permittedV4]);
  const { exitCode, stdout, stderr } = await attemptIn(sandbox, program);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).not.toMatch(/page of \w+ v6|hello from \w+ v6|service of the host|LEAK/);
  expect(await lab.strays()).toBe(0);
  const seen = (await lab.visits()).filter(({ service }) => service.includes('v6'));
  expect(policy === 'open' ? [] : seen).toEqual([]);
  expect(await lab.intrusions()).toEqual([]);
}

/** What the attempts on the link may use of IPv4 under the policy of names. */
const permittedV4 = [
  `ip daddr { ${addresses.allowed}, ${addresses.wild}, ${hostileServer}, ${silentServer} } tcp dport { 80, 443 }`,
  `ip daddr ${addresses.publicResolver} meta l4proto { tcp, udp } th dport 53`,
];

/** If the network stops an attempt, the program ends in order; a mistake in the program does not end in order. */
function attemptIn(sandbox: string, program: string) {
  const wrapped = `
program = bytes.fromhex('${Buffer.from(program).toString('hex')}').decode()
try: exec(program)
except (OSError, subprocess.SubprocessError) as error: print('ended by', type(error).__name__, error)
`;
  const run = /\b(frame6?|hears|AF_PACKET)\b/.test(program) ? lab.pythonOnLink : lab.python;
  const names = `
INSTALLATION = ${lab.installation}
OTHER6, ALLOWED6, ATTACKER6 = '${addressesV6.other}', '${addressesV6.allowed}', '${addressesV6.attacker}'
SLOTS6 = ${JSON.stringify([0, 1, 2, 3].map(number => slotOf(lab.installation, number).addressV6))}
`;
  return run(sandbox, `${names}${preludes}${wrapped}`);
}
