import { afterAll, beforeAll, expect, test } from 'bun:test';
import { slotOf } from '../../src/node/layout.ts';
import { addresses, hostUplink, internetUplink } from './support/addresses.ts';
import { startLab, type Lab } from './support/lab.ts';

let lab: Lab;
beforeAll(
  async () => (lab = await startLab({ buildNetwork: { internetAccess: false, allowOut: [addresses.allowed] } })),
  120_000,
);
afterAll(() => lab.dispose(), 120_000);

const open = { internetAccess: true };
const ping = (address: string) => `ping -c 1 -W 2 ${address}`;
const get = (address: string) => `curl -sS --max-time 4 http://${address}/`;

test("an open policy reaches the internet by TCP, UDP and ping, from the host's address", async () => {
  const sandbox = await lab.create(open);
  expect(await lab.run(sandbox, get(addresses.anycast))).toMatchObject({ exitCode: 0, stdout: 'page of anycast\n' });
  expect((await lab.run(sandbox, datagram(addresses.other))).stdout).toBe('ping\n');
  expect((await lab.visits()).map(({ service, from }) => `${service} ${from}`)).toEqual([
    'http anycast 192.0.2.2',
    'datagram other 192.0.2.2',
  ]);
  expect(await lab.run(sandbox, ping(addresses.other))).toMatchObject({ exitCode: 0 });
  await lab.kill(sandbox);
});

test('without internet access nothing leaves, but what allowOut names', async () => {
  const sandbox = await lab.create({ internetAccess: false, allowOut: [addresses.allowed, '1.0.0.0/8'] });
  expect((await lab.run(sandbox, get(addresses.allowed))).exitCode).toBe(0);
  expect((await lab.run(sandbox, get(addresses.anycast))).exitCode).toBe(0);
  expect((await lab.run(sandbox, get(addresses.other))).exitCode).not.toBe(0);
  expect((await lab.run(sandbox, datagram(addresses.other))).exitCode).not.toBe(0);
  expect(await lab.run(sandbox, ping(addresses.allowed))).toMatchObject({ exitCode: 0 });
  expect(await lab.run(sandbox, ping(addresses.other))).not.toMatchObject({ exitCode: 0 });
  expect((await lab.visits()).map(visit => visit.service)).toEqual(['http allowed', 'http anycast']);
  await lab.kill(sandbox);
});

test('a sandbox that reaches nothing is told so at once when it asks for a name, and no question leaves', async () => {
  const ask = `python3 -c "import socket; socket.gethostbyname('allowed.test')"`;
  for (const allowOut of [[], [addresses.allowed]]) {
    const sandbox = await lab.create({ internetAccess: false, allowOut });
    const from = performance.now();
    expect((await lab.run(sandbox, ask)).stderr).toContain('name resolution');
    expect(performance.now() - from).toBeLessThan(4_000);
    expect((await lab.run(sandbox, get(addresses.other))).exitCode).not.toBe(0);
    await lab.update(sandbox, open);
    expect((await lab.run(sandbox, ask)).exitCode).toBe(0);
    await lab.visits();
    await lab.update(sandbox, { internetAccess: false, allowOut });
    expect((await lab.run(sandbox, ask)).exitCode).not.toBe(0);
    expect(await lab.visits()).toEqual([]);
    expect(await lab.history(sandbox)).toContainEqual(expect.stringContaining('allowed.test'));
    await lab.kill(sandbox);
  }
});

test('steps of builds reach what the operator lets builds reach, and sandboxes are as free as they say', async () => {
  expect((await lab.build(get(addresses.allowed))).status).toBe('ready');
  expect(await lab.build(get(addresses.anycast))).toMatchObject({ status: 'error', step: '1' });
  expect((await lab.visits()).map(visit => visit.service)).toEqual(['http allowed']);
  const sandbox = await lab.create(open);
  expect((await lab.run(sandbox, get(addresses.anycast))).exitCode).toBe(0);
  await lab.visits();
  await lab.kill(sandbox);
});

test('a command of a Dockerfile that wants no network has none', async () => {
  expect((await lab.build(get(addresses.allowed), 'default')).status).toBe('ready');
  await lab.visits();
  expect((await lab.build(get(addresses.allowed), 'none')).status).toBe('error');
  expect(await lab.visits()).toEqual([]);
});

test('denyOut denies, and allowOut beats it', async () => {
  const sandbox = await lab.create({
    internetAccess: true,
    denyOut: ['203.0.113.0/24', '203.0.0.0/16'],
    allowOut: [addresses.allowed],
  });
  expect((await lab.run(sandbox, get(addresses.other))).exitCode).not.toBe(0);
  expect((await lab.run(sandbox, get(addresses.allowed))).exitCode).toBe(0);
  expect((await lab.run(sandbox, get(addresses.anycast))).exitCode).toBe(0);
  await lab.kill(sandbox);
});

test('an allow does not open protected ranges', async () => {
  const sandbox = await lab.create({ internetAccess: false, allowOut: ['0.0.0.0/0', '10.0.0.5', '169.254.169.254'] });
  const before = await lab.strays();
  for (const address of ['10.0.0.5', '169.254.169.254', '192.168.1.5'])
    expect((await lab.run(sandbox, get(address))).exitCode).not.toBe(0);
  expect((await lab.run(sandbox, get(addresses.other))).exitCode).toBe(0);
  expect(await lab.strays()).toBe(before);
  await lab.kill(sandbox);
});

test('an update holds at once: new connections, and existing ones are cut', async () => {
  const sandbox = await lab.create(open);
  await lab.visits();
  // A connection that waits for the server: it learns of its end without sending anything.
  const waiting = lab.run(
    sandbox,
    `python3 -c "
import socket
s = socket.create_connection(('${addresses.other}', 7000)); s.settimeout(20)
print(s.recv(100)); print('up', flush=True)
try: print('got', s.recv(100))
except ConnectionError as error: print('cut', type(error).__name__)
"`,
  );
  await until(async () => (await lab.visits()).some(visit => visit.service === 'echo other'));
  await lab.update(sandbox, { internetAccess: true, denyOut: [addresses.other] });
  expect((await waiting).stdout).toMatch(/^cut /m);
  expect((await lab.run(sandbox, get(addresses.other))).exitCode).not.toBe(0);
  expect((await lab.run(sandbox, get(addresses.anycast))).exitCode).toBe(0);
  await lab.update(sandbox, open);
  expect((await lab.run(sandbox, get(addresses.other))).exitCode).toBe(0);
  await lab.kill(sandbox);
});

test('an update leaves connections alone that stay allowed', async () => {
  const sandbox = await lab.create(open);
  await lab.visits();
  const kept = lab.run(
    sandbox,
    `python3 -c "
import socket, time
s = socket.create_connection(('${addresses.allowed}', 7000)); s.settimeout(20)
s.recv(100)
for i in range(30): s.sendall(b'x'); assert s.recv(1) == b'x'; time.sleep(0.05)
print('kept')
"`,
  );
  await until(async () => (await lab.visits()).some(visit => visit.service === 'echo allowed'));
  await lab.update(sandbox, { internetAccess: false, allowOut: [addresses.allowed] });
  expect((await kept).stdout).toBe('kept\n');
  await lab.kill(sandbox);
});

test('datagrams of a denied conversation are not let in any more', async () => {
  const sandbox = await lab.create(open);
  const receiver = lab.run(
    sandbox,
    `python3 -c "
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
def ask():
  try: s.sendto(b'x', ('${addresses.other}', 7000)); return s.recv(10)
  except (OSError, socket.timeout) as error: return type(error).__name__
while ask() == b'x': time.sleep(0.05)
print('silent')
"`,
  );
  await until(async () => (await lab.visits()).some(visit => visit.service === 'datagram other'));
  await lab.update(sandbox, { internetAccess: false });
  expect((await receiver).stdout).toBe('silent\n');
  await lab.kill(sandbox);
});

test('sandboxes do not reach each other, and each has its own policy', async () => {
  const [free, closed] = await Promise.all([lab.create(open), lab.create({ internetAccess: false })]);
  expect((await lab.run(free, get(addresses.other))).exitCode).toBe(0);
  expect((await lab.run(closed, get(addresses.other))).exitCode).not.toBe(0);
  for (const address of [
    slotOf(lab.installation, 0).address,
    slotOf(lab.installation, 1).address,
    '169.254.0.22',
    '192.0.2.2',
  ])
    expect((await lab.run(free, get(address))).exitCode).not.toBe(0);
  await Promise.all([lab.kill(free), lab.kill(closed)]);
});

test('policies outlive a restart of the node', async () => {
  const sandbox = await lab.create({ internetAccess: false, allowOut: [addresses.allowed] });
  await lab.update(sandbox, { internetAccess: false, allowOut: [addresses.other] });
  await lab.restart();
  expect((await lab.run(sandbox, get(addresses.other))).exitCode).toBe(0);
  expect((await lab.run(sandbox, get(addresses.allowed))).exitCode).not.toBe(0);
  await lab.update(sandbox, { internetAccess: false });
  expect((await lab.run(sandbox, get(addresses.other))).exitCode).not.toBe(0);
  await lab.kill(sandbox);
});

test('what is denied is counted and logged with the rule', async () => {
  const sandbox = await lab.create({ internetAccess: true, denyOut: [addresses.other] });
  await lab.run(sandbox, `${get(addresses.other)}; ${get('10.0.0.5')}; ${get(addresses.anycast)}`);
  const { bytesIn, bytesOut, denied } = await lab.traffic(sandbox);
  expect(denied).toBe(2);
  expect(bytesIn).toBeGreaterThan(300);
  expect(bytesOut).toBeGreaterThan(300);
  let messages: string[] = [];
  await until(
    async () => (messages = (await lab.history(sandbox)).filter(message => message.startsWith('denied'))).length >= 2,
  );
  expect(messages).toContain(`denied: host ${addresses.other} port 80 by rule denyOut ${addresses.other}`);
  expect(messages).toContain('denied: host 10.0.0.5 port 80 by rule protected 10.0.0.0/8');
  await lab.kill(sandbox);
});

test('nothing of a policy is left when its sandboxes are gone', async () => {
  const policy = { internetAccess: false, allowOut: ['203.0.113.0/25', '8.0.0.0/9'] };
  const [first, second] = await Promise.all([lab.create(policy), lab.create(policy)]);
  const rules = () => lab.inHost('nft', 'list', 'ruleset').match(/chain out_\w+|set allow_\w+/g) ?? [];
  expect(new Set(rules()).size).toBe(2); // one chain and one set for both
  await lab.kill(first);
  expect((await lab.run(second, get(addresses.allowed))).exitCode).toBe(0);
  await lab.kill(second);
  expect(rules()).toEqual([]);
});

function datagram(address: string): string {
  return `python3 -c "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2)
s.sendto(b'ping', ('${address}', 7000)); print(s.recv(10).decode())
"`;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await Bun.sleep(20);
}

test('rules that somebody removes come back, with the policies of sandboxes, and links are made as before', async () => {
  const reaches = async (sandbox: string, address: string) =>
    (await lab.run(sandbox, `curl -sS --max-time 2 http://${address}/`)).exitCode === 0;
  const [open, closed] = await Promise.all([
    lab.create({ internetAccess: true, denyOut: [addresses.attacker] }),
    lab.create({ internetAccess: false, allowOut: [addresses.allowed] }),
  ]);
  const listed = (...table: string[]) => {
    try {
      return lab.inHost('nft', 'list', 'table', ...table, `atoll${lab.installation}`);
    } catch {
      return ''; // it is not there
    }
  };
  const tables = () => [listed('inet'), listed('netdev')];
  expect(await reaches(closed, addresses.other)).toBe(false);
  lab.inHost('nft', 'flush', 'ruleset');
  expect(tables()).toEqual(['', '']);
  await until(async () => tables().every(text => text !== ''));
  expect(tables().join('')).toContain('elements = { "up0" }');
  expect(await reaches(open, addresses.other)).toBe(true);
  expect(await reaches(open, addresses.attacker)).toBe(false);
  expect(await reaches(closed, addresses.allowed)).toBe(true);
  expect(await reaches(closed, addresses.other)).toBe(false);
  expect((await lab.traffic(closed)).denied).toBeGreaterThan(0);
  const later = await lab.create({ internetAccess: false, allowOut: [addresses.other] });
  expect(await reaches(later, addresses.other)).toBe(true);
  expect(await reaches(later, addresses.allowed)).toBe(false);
  expect((await lab.logged()).some(line => line.includes('somebody has removed the packet rules'))).toBe(true);
  for (const sandbox of [open, closed, later]) await lab.kill(sandbox);
});

test('rules that somebody takes out of their chains come back', async () => {
  const sandbox = await lab.create({ internetAccess: false, allowOut: [addresses.allowed] });
  const rules = (family: string) =>
    lab.inHost('nft', 'list', 'table', family, `atoll${lab.installation}`).match(/\b(jump|goto|drop)\b/g)?.length ?? 0;
  for (const [family, ...only] of [['inet'], ['netdev'], ['inet', 'forward'], ['inet', 'output']] as const) {
    const before = rules(family);
    lab.inHost('nft', 'flush', only.length > 0 ? 'chain' : 'table', family, `atoll${lab.installation}`, ...only);
    expect(rules(family)).toBeLessThan(before);
    await until(async () => rules(family) === before);
  }
  const reached = async (address: string) =>
    (await lab.run(sandbox, `curl -sS --max-time 2 http://${address}/`)).exitCode === 0;
  expect([await reached(addresses.allowed), await reached(addresses.other)]).toEqual([true, false]);
  await lab.kill(sandbox);
});

test('sandboxes are made, and get other policies, also while their rules are removed', async () => {
  const only = (address: string) => ({ internetAccess: false, allowOut: [address] });
  const reached = async (sandbox: string) =>
    Promise.all(
      [addresses.allowed, addresses.other].map(
        async address => (await lab.run(sandbox, `curl -sS --max-time 2 http://${address}/`)).exitCode === 0,
      ),
    );
  const present = await lab.create(only(addresses.other));
  // At different moments of the way back.
  for (const waitMs of [0, 600, 900, 1_000]) {
    lab.inHost('nft', 'flush', 'ruleset');
    await Bun.sleep(waitMs);
    const [made, madeOpen] = await Promise.all([
      lab.create(only(addresses.allowed)),
      lab.create(open),
      lab.update(present, only(addresses.allowed)),
    ]);
    await until(async () => lab.inHost('nft', 'list', 'tables').includes(`netdev atoll${lab.installation}`));
    expect([await reached(made), await reached(present)]).toEqual([
      [true, false],
      [true, false],
    ]);
    expect(await reached(madeOpen)).toEqual([true, true]);
    for (const sandbox of [made, madeOpen]) await lab.kill(sandbox);
    await lab.update(present, only(addresses.other));
    expect(await reached(present)).toEqual([false, true]);
  }
  await lab.kill(present);
}, 60_000);

test('a sandbox ends also while its rules are removed, and leaves nothing to the next one', async () => {
  const rules = () => lab.inHost('nft', 'list', 'table', 'inet', `atoll${lab.installation}`);
  const policy = { internetAccess: false, allowOut: [addresses.allowed, addresses.attacker] };
  const ofPolicies = () => rules().match(/chain out_\w+/g) ?? [];
  const before = ofPolicies();
  // At different moments of the way back.
  for (const waitMs of [0, 900, 1_000]) {
    const sandbox = await lab.create(policy);
    lab.inHost('nft', 'flush', 'ruleset');
    await Bun.sleep(waitMs);
    await lab.kill(sandbox);
    await until(async () => lab.inHost('nft', 'list', 'tables').includes(`netdev atoll${lab.installation}`));
    await until(async () => Bun.deepEquals(ofPolicies(), before));
    const next = await lab.create({ internetAccess: false, allowOut: [addresses.other] });
    const reached = async (address: string) =>
      (await lab.run(next, `curl -sS --max-time 2 http://${address}/`)).exitCode === 0;
    expect([await reached(addresses.other), await reached(addresses.allowed)]).toEqual([true, false]);
    await lab.kill(next);
  }
});

test('the host forwards for sandboxes and for nobody else', async () => {
  const settings = () =>
    lab
      .inHost('sh', '-c', 'cd /proc/sys/net/ipv4; cat ip_forward conf/up0/forwarding conf/lan0/forwarding')
      .split('\n')
      .slice(0, 3);
  // Another network of the host's, to which the internet has a route by mistake or on purpose.
  lab.inHost(
    'sh',
    '-c',
    'ip link add lan0 type veth peer name lan1; ip link set lan0 up; ip link set lan1 up; sysctl -qw net.ipv6.conf.lan0.disable_ipv6=1 net.ipv6.conf.lan1.disable_ipv6=1; ip address add 10.9.9.1/24 dev lan0',
  );
  lab.inInternet('ip', 'route', 'add', '10.9.9.0/24', 'via', hostUplink);
  expect(settings()).toEqual(['0', '1', '0']);
  const sandbox = await lab.create({ internetAccess: true });
  expect((await lab.run(sandbox, `curl -sS --max-time 5 http://${addresses.other}/`)).stdout).toBe('page of other\n');
  const sent = () => Number(lab.inHost('cat', '/sys/class/net/lan0/statistics/tx_packets'));
  // One packet of its own, to show that the count counts.
  lab.inHost('bash', '-c', 'ip neigh add 10.9.9.5 lladdr 02:00:00:00:00:05 dev lan0; echo x > /dev/udp/10.9.9.5/9');
  const before = sent();
  expect(before).toBeGreaterThan(0);
  lab.inInternet('bash', '-c', 'for i in 1 2 3; do echo x > /dev/udp/10.9.9.5/9; done; sleep 0.3');
  expect(sent()).toBe(before);
  await lab.kill(sandbox);
});

test('an interface that was the way out passes on nothing of strangers when another one is', async () => {
  lab.inHost(
    'sh',
    '-c',
    'ip link add lan2 type veth peer name lan3; ip link set lan2 up; ip link set lan3 up; sysctl -qw net.ipv6.conf.lan2.disable_ipv6=1 net.ipv6.conf.lan3.disable_ipv6=1; ip address add 10.9.8.1/24 dev lan2; ip neigh add 10.9.8.5 lladdr 02:00:00:00:00:05 dev lan2',
  );
  lab.inInternet('ip', 'route', 'add', '10.9.8.0/24', 'via', hostUplink);
  const forwards = (name: string) => lab.inHost('cat', `/proc/sys/net/ipv4/conf/${name}/forwarding`).trim() === '1';
  const sent = () => Number(lab.inHost('cat', '/sys/class/net/lan2/statistics/tx_packets'));
  lab.inHost('ip', 'route', 'replace', 'default', 'via', '10.9.8.5', 'dev', 'lan2');
  // That network looks public: as long as it is there, its interface is also a way out.
  const uplink = ['192.0.2.0/24', 'dev', 'up0', 'src', hostUplink];
  lab.inHost('ip', 'route', 'del', ...uplink);
  try {
    await until(async () => forwards('lan2'));
    expect(forwards('up0')).toBe(true);
    const before = sent();
    lab.inInternet('bash', '-c', 'for i in 1 2 3; do echo x > /dev/udp/10.9.8.5/9; done; sleep 0.3');
    expect(sent()).toBe(before);
    lab.inHost('bash', '-c', 'echo x > /dev/udp/10.9.8.5/9');
    expect(sent()).toBeGreaterThan(before);
  } finally {
    lab.inHost('ip', 'route', 'add', ...uplink);
    lab.inHost('ip', 'route', 'replace', 'default', 'via', internetUplink, 'dev', 'up0');
  }
});
