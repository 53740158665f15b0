import { afterAll, beforeAll, expect, test } from 'bun:test';
import { addresses, addressesV6, victimAddressesV6 } from './support/addresses.ts';
import { startLab, type Lab } from './support/lab.ts';

// A host that has a way out by IPv6, and one that has none.

let lab: Lab;
beforeAll(async () => (lab = await startLab({ ipv6: true })), 120_000);
afterAll(() => lab.dispose(), 120_000);

const get = (address: string) => `curl -sS --max-time 4 'http://${address.includes(':') ? `[${address}]` : address}/'`;
const closed = { internetAccess: false };

test("an open policy reaches the internet by IPv6: TCP, UDP and ping, from the host's address", async () => {
  const sandbox = await lab.create({ internetAccess: true });
  expect(await lab.run(sandbox, get(addressesV6.other), 'user')).toMatchObject({
    exitCode: 0,
    stdout: 'page of other v6\n',
  });
  expect((await lab.run(sandbox, datagram(addressesV6.other))).stdout).toBe('ping\n');
  expect((await lab.run(sandbox, ping(addressesV6.other), 'user')).stdout).toBe('answered\n');
  expect((await lab.run(sandbox, get(addresses.other))).stdout).toBe('page of other\n');
  expect((await lab.visits()).map(({ service, from }) => `${service} ${from}`)).toEqual([
    'http other v6 2001:db8:1::2',
    'datagram other v6 2001:db8:1::2',
    'http other 192.0.2.2',
  ]);
  await lab.kill(sandbox);
});

test('much goes through in both directions, and what is longer than a packet', async () => {
  const sandbox = await lab.create({ internetAccess: true });
  expect((await lab.run(sandbox, `curl -sS 'http://[${addressesV6.other}]/big' | wc -c`)).stdout).toBe(`${64 << 20}\n`);
  const sent = `head -c 8000000 /dev/zero | curl -sS --data-binary @- 'http://[${addressesV6.other}]/size'`;
  expect((await lab.run(sandbox, sent)).stdout).toBe('8000000\n');
  expect((await lab.run(sandbox, datagram(addressesV6.other, 4000))).stdout).toBe(`${'x'.repeat(4000)}\n`);
  await lab.kill(sandbox);
});

test('blocks of IPv6 in allowOut and denyOut hold, and an allow beats a deny', async () => {
  const only = await lab.create({ ...closed, allowOut: [addressesV6.allowed] });
  expect((await lab.run(only, get(addressesV6.allowed))).stdout).toBe('page of allowed v6\n');
  for (const address of [addressesV6.other, addresses.allowed, addresses.other])
    expect((await lab.run(only, get(address))).exitCode).not.toBe(0);
  const but = await lab.create({
    internetAccess: true,
    denyOut: ['2001:db8:f::/64', '2001:db8:f::/48'],
    allowOut: ['2001:db8:f::10/127'],
  });
  expect((await lab.run(but, get(addressesV6.other))).stdout).toBe('page of other v6\n');
  expect((await lab.run(but, get(addressesV6.attacker))).exitCode).not.toBe(0);
  expect((await lab.run(but, get(addresses.attacker))).stdout).toBe('page of attacker\n');
  for (const policy of [
    closed,
    { internetAccess: true, denyOut: ['0.0.0.0/0'] },
    { internetAccess: true, denyOut: ['::/0'] },
  ]) {
    const none = await lab.create(policy);
    expect((await lab.run(none, get(addressesV6.other))).exitCode).not.toBe(0);
    await lab.kill(none);
  }
  await Promise.all([lab.kill(only), lab.kill(but)]);
});

test('no policy opens what is protected', async () => {
  const sandbox = await lab.create({ internetAccess: true, allowOut: ['::/0', ...victimAddressesV6] });
  const before = await lab.strays();
  for (const address of victimAddressesV6)
    expect((await lab.run(sandbox, `${get(address)} --connect-timeout 1`)).exitCode).not.toBe(0);
  expect(await lab.strays()).toBe(before);
  expect((await lab.run(sandbox, get(addressesV6.other))).exitCode).toBe(0);
  // The same packets from the host itself are counted: the watch is awake.
  lab.inHost('bash', '-c', 'echo x > /dev/udp/fd00:ec2::254/9');
  expect(await lab.strays()).toBeGreaterThan(before);
  await lab.kill(sandbox);
});

test('an update holds at once: a connection by IPv6 that it denies is cut, others stay', async () => {
  const sandbox = await lab.create({ internetAccess: true });
  await lab.visits();
  const waiting = lab.run(
    sandbox,
    `python3 -c "
import socket
s = socket.create_connection(('${addressesV6.other}', 7000)); s.settimeout(20)
kept = socket.create_connection(('${addressesV6.allowed}', 7000)); kept.settimeout(20); kept.recv(100)
print(s.recv(100)); print('up', flush=True)
try: print('got', s.recv(100))
except ConnectionError as error: print('cut', type(error).__name__)
kept.sendall(b'x'); print('kept', kept.recv(1))
"`,
  );
  await until(async () => (await lab.visits()).some(visit => visit.service === 'echo allowed v6'));
  await lab.update(sandbox, { internetAccess: true, denyOut: [addressesV6.other] });
  const { stdout } = await waiting;
  expect(stdout).toMatch(/^cut /m);
  expect(stdout).toMatch(/^kept b'x'$/m);
  await lab.kill(sandbox);
});

test('where names decide, IPv6 is refused at once and the same name goes by IPv4', async () => {
  const names = await lab.create({ internetAccess: true, denyOut: ['0.0.0.0/0'], allowOut: ['allowed.test'] });
  const headers = await lab.create({ internetAccess: true, headerRules: { 'allowed.test': { 'X-Rule': 'yes' } } });
  for (const sandbox of [names, headers]) {
    // As a program that tries one address after another.
    const both = `curl -sS --max-time 4 --resolve 'allowed.test:80:[${addressesV6.allowed}],${addresses.allowed}' http://allowed.test/`;
    expect((await lab.run(sandbox, both)).stdout).toBe('page of allowed\n');
    // By a reset, not by silence.
    expect((await lab.run(sandbox, get(addressesV6.allowed))).exitCode).toBe(7);
  }
  expect((await lab.visits()).filter(({ service }) => service.includes('v6'))).toEqual([]);
  // The rules do not concern other ports.
  expect((await lab.run(headers, datagram(addressesV6.other))).stdout).toBe('ping\n');
  await Promise.all([lab.kill(names), lab.kill(headers)]);
});

test('nothing goes by IPv6 past a SOCKS5 server', async () => {
  const sandbox = await lab.create({ internetAccess: true, egressProxy: { address: `${addresses.socks}:1080` } });
  await lab.visits();
  for (const command of [
    get(addressesV6.other),
    datagram(addressesV6.other),
    `curl -m 2 'http://[${addressesV6.other}]:7000'`,
  ])
    expect((await lab.run(sandbox, command)).exitCode).not.toBe(0);
  expect((await lab.visits()).filter(({ service }) => service.includes('v6'))).toEqual([]);
  await lab.kill(sandbox);
});

test('what is denied by IPv6 is counted, and logged with the rule', async () => {
  const sandbox = await lab.create({ internetAccess: true, denyOut: [addressesV6.other] });
  await lab.run(sandbox, `${get(addressesV6.other)}; ${get('fd00:ec2::254')}; ${get(addressesV6.allowed)}`);
  expect((await lab.traffic(sandbox)).denied).toBe(2);
  let messages: string[] = [];
  await until(
    async () => (messages = (await lab.history(sandbox)).filter(message => message.startsWith('denied'))).length >= 2,
  );
  expect(messages).toContain(`denied: host ${addressesV6.other} port 80 by rule denyOut ${addressesV6.other}`);
  expect(messages).toContain('denied: host fd00:ec2::254 port 80 by rule protected outside of 2000::/3');
  await lab.kill(sandbox);
});

test('a sandbox has IPv6 again after a pause, and its services that listen there', async () => {
  const policy = { internetAccess: true, denyOut: [addressesV6.attacker] };
  const sandbox = await lab.create(policy);
  await lab.run(
    sandbox,
    'setsid python3 -c \'import socket; l = socket.create_server(("::", 7000), family=socket.AF_INET6); l.accept(); l.accept()\' >/dev/null 2>&1 &',
  );
  await until(async () => (await lab.run(sandbox, 'bash -c "echo > /dev/tcp/::1/7000"')).exitCode === 0);
  const from = await lab.pauseAndResume(sandbox, policy);
  expect((await lab.run(sandbox, get(addressesV6.other))).stdout).toBe('page of other v6\n');
  expect((await lab.run(sandbox, get(addressesV6.attacker))).exitCode).not.toBe(0);
  if (from === 'memory') expect((await lab.run(sandbox, 'bash -c "echo > /dev/tcp/::1/7000"')).exitCode).toBe(0);
  await lab.kill(sandbox);
}, 60_000);

test('what comes for a sandbox that is gone does not reach its successor, and rules outlive a restart', async () => {
  const first = await lab.create({ internetAccess: true });
  expect((await lab.run(first, datagram(addressesV6.other))).stdout).toBe('ping\n');
  const tracked = () => lab.inHost('sh', '-c', 'cat /proc/net/nf_conntrack | grep -c fda7:0110:5b3c || true').trim();
  expect(Number(tracked())).toBeGreaterThan(0);
  await lab.kill(first);
  await until(async () => tracked() === '0');
  const second = await lab.create({ ...closed, allowOut: [addressesV6.allowed] });
  await lab.restart();
  expect((await lab.run(second, get(addressesV6.allowed))).exitCode).toBe(0);
  expect((await lab.run(second, get(addressesV6.other))).exitCode).not.toBe(0);
  await lab.kill(second);
});

test('the host forwards by IPv6 for sandboxes alone, and believes its router as before', async () => {
  const read = (path: string) => lab.inHost('cat', `/proc/sys/net/ipv6/conf/${path}`).trim();
  expect(read('all/forwarding')).toBe('0');
  expect(read('up0/forwarding')).toBe('0');
  expect(read('up0/force_forwarding')).toBe('1');
  lab.inHost('sh', '-c', 'ip link add lan6 type veth peer name lan7; ip link set lan6 up; ip link set lan7 up');
  lab.inHost('ip', 'address', 'add', '2001:db8:9::1/64', 'dev', 'lan6', 'nodad');
  lab.inHost('ip', 'neigh', 'add', '2001:db8:9::5', 'lladdr', '02:00:00:00:00:05', 'dev', 'lan6');
  lab.inHost('nft', 'add table ip6 count; add chain ip6 count c { type filter hook postrouting priority 0; }');
  lab.inHost('nft', 'add rule ip6 count c oifname lan6 ip6 daddr 2001:db8:9::5 counter');
  const sent = () => /packets (\d+)/.exec(lab.inHost('nft', 'list', 'table', 'ip6', 'count'))?.[1];
  // One packet of its own, to show that the count counts.
  lab.inHost('bash', '-c', 'echo x > /dev/udp/2001:db8:9::5/9');
  expect(sent()).toBe('1');
  lab.inInternet('bash', '-c', 'for i in 1 2 3; do echo x > /dev/udp/2001:db8:9::5/9; done; sleep 0.3');
  expect(sent()).toBe('1');
});

test('where the host has no way out by IPv6, sandboxes have no address of it, and are told at once', async () => {
  const other = await startLab();
  try {
    const sandbox = await other.create({ internetAccess: true });
    const { stdout } = await other.run(sandbox, 'cat /proc/net/if_inet6');
    expect(
      stdout
        .trim()
        .split('\n')
        .map(line => line.split(/\s+/).at(-1)),
    ).toEqual(['lo']);
    expect((await other.run(sandbox, get(addressesV6.other))).stderr).toMatch(
      /unreachable|Couldn't connect|Failed to connect/,
    );
    expect((await other.logged()).join('\n')).toContain('no route to the internet by IPv6');
    await other.kill(sandbox);
  } finally {
    await other.dispose();
  }
}, 120_000);

function datagram(address: string, bytes?: number): string {
  const sent = bytes === undefined ? "b'ping'" : `b'x' * ${bytes}`;
  return `python3 -c "
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.settimeout(2)
s.sendto(${sent}, ('${address}', 7000)); print(s.recv(10000).decode())
"`;
}

function ping(address: string): string {
  return `python3 -c "
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_ICMPV6); s.settimeout(2)
s.sendto(bytes([128, 0, 0, 0, 0, 1, 0, 1]), ('${address}', 0)); s.recv(100); print('answered')
"`;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await Bun.sleep(20);
}
