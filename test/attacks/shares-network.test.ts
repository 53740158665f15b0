import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { silentAfterMs } from '../../src/node/network/egress/proxies/watch.ts';
import { proxyCount } from '../../src/node/network/egress/proxies/proxies.ts';
import { connectionsMax } from '../../src/node/network/egress/proxy/sandboxes.ts';
import { dnsConnectionsMax } from '../../src/node/network/egress/proxy/dns/forwarder.ts';
import { newConnections } from '../../src/node/network/rules/closed-flows.ts';
import { flowsPerSandbox, trackedMax } from '../../src/node/network/rules/host-features.ts';
import { nextHops, packetsOut } from '../../src/node/network/rules/forward-chains.ts';
import { fragments } from '../../src/node/network/rules/link-table.ts';
import { proxyPort, resolverPort } from '../../src/node/network/rules/proxy-chains.ts';
import { startLab, type Lab } from '../egress/support/lab.ts';
import { policies } from './support/network/attempt.ts';

// One sandbox takes all it can of what the network's sandboxes share; the test counts what a second sandbox and the
// host still have. The two have the same egress proxy.

const prelude = readFileSync(join(import.meta.dir, 'support/network/prelude.py'), 'utf8');
const flowsMax = flowsPerSandbox(trackedMax());

let lab: Lab;

beforeAll(async () => {
  lab = await startLab();
}, 120_000);
afterAll(() => lab.dispose(), 120_000);

test('connection tracking: one sandbox fills its own part of the table', async () => {
  await withTwo('open', async ({ greedy, modest }) => {
    const before = await trackedAtRest();
    const opened = counted(
      await attempt(
        greedy,
        `
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(20000):
    try: s.sendto(b'x', (f'203.0.113.{100 + n // 1000}', 1000 + n % 1000))
    except OSError: pass
print('sent', 20000)
`,
      ),
      'sent',
    );
    expect(opened).toBe(20_000);
    expect(tracked() - before).toBeGreaterThan(flowsMax / 2);
    expect(tracked() - before).toBeLessThanOrEqual(flowsMax + 50);
    // It gets no more of them, over TCP neither; others have as many as before.
    expect(counted(await attempt(greedy, conversations(20)), 'answered')).toBe(0);
    expect(counted(await attempt(modest, conversations(200)), 'answered')).toBe(200);
    expect(hostReaches(20)).toBe(20);
    expect(await lab.history(greedy)).toContainEqual(
      expect.stringContaining(`at most ${flowsMax} connections at a time`),
    );
  });
}, 120_000);

test('connection tracking: connections that are over when they begin take no more than open ones', async () => {
  await withTwo('open', async ({ greedy, modest }) => {
    const before = await trackedAtRest();
    const startedAt = performance.now();
    // The kernel's count excludes them; its table does not.
    await attempt(
      greedy,
      `
for _ in range(40):
    batch = [socket.socket() for _ in range(200)]
    for s in batch:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0)); s.setblocking(False); s.connect_ex((OTHER, 7000))
    time.sleep(0.05)
    for s in batch: s.close()
`,
    );
    const seconds = (performance.now() - startedAt) / 1000;
    const { burst, perSecond } = newConnections(flowsMax, true);
    expect(tracked() - before).toBeGreaterThan(100);
    expect(tracked() - before).toBeLessThanOrEqual(burst + seconds * perSecond + 50);
    expect(await lab.history(greedy)).toContainEqual(expect.stringContaining('as many that were just closed'));
    expect(counted(await attempt(modest, conversations(200)), 'answered')).toBe(200);
  });
}, 120_000);

test('connection tracking: connections that are over are forgotten soon', async () => {
  await withTwo('open', async ({ greedy }) => {
    const before = await trackedAtRest();
    const made = await attempt(
      greedy,
      `
def visit(n):
    s = connected(OTHER, 80, wait=5); s.shutdown(socket.SHUT_WR); s.recv(1); s.close(); return n
print('made', len(many(300, visit, seconds=10)))
`,
    );
    expect(counted(made, 'made')).toBe(300);
    expect(tracked() - before).toBeGreaterThan(100);
    await until(async () => trackedNow() - before < 100, 40_000);
  });
}, 120_000);

test("neighbours: one sandbox adds few to the host's table, by the link none at all", async () => {
  await withTwo('open', async ({ greedy, modest }) => {
    // The host's own network, whose addresses look public.
    const before = neighbours().length;
    const startedAt = performance.now();
    await attempt(
      greedy,
      `
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(3, 254):
    for port in (7, 9):
        try: s.sendto(b'x', (f'192.0.2.{n}', port))
        except OSError: pass
hears(*[arp(HOST, sender=f'192.0.2.{n & 255}', sender_mac=bytes([2, 0, 0, 0, n >> 8, n & 255])) for n in range(1000)])
`,
    );
    const seconds = (performance.now() - startedAt) / 1000;
    const added = neighbours().length - before;
    expect(added).toBeGreaterThan(0);
    expect(added).toBeLessThanOrEqual(nextHops.burst + Math.ceil(seconds * nextHops.perSecond));
    expect(neighbours().filter(line => / dev at\d+-/.test(line) && !/^169\.254\.0\.21 .*PERMANENT/.test(line))).toEqual(
      [],
    );
    expect(counted(await attempt(modest, conversations(50)), 'answered')).toBe(50);
    expect(hostReaches(20)).toBe(20);
  });
}, 120_000);

test('pieces of packets: one sandbox takes a part of the room for them', async () => {
  await withTwo('open', async ({ greedy, modest }) => {
    const startedAt = performance.now();
    await attempt(greedy, 'raw(*[ip(OTHER, bytes(1400), identifier=n, fragment=0x2000) for n in range(5000)])');
    const seconds = (performance.now() - startedAt) / 1000;
    const waiting = Number(/^FRAG: inuse (\d+)/m.exec(lab.inHost('cat', '/proc/net/sockstat'))?.[1]);
    expect(waiting).toBeGreaterThan(0);
    expect(waiting).toBeLessThanOrEqual(fragments.burst + Math.ceil(seconds * fragments.perSecond));
    expect(
      counted(
        await attempt(
          modest,
          `
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3)
whole = 0
for n in range(10):
    s.sendto(bytes(4000), (OTHER, 7000)); whole += len(s.recv(5000)) == 4000
print('whole', whole)
`,
        ),
        'whole',
      ),
    ).toBe(10);
  });
}, 120_000);

test('packets out: one sandbox sends so many, and the others reach what they want meanwhile', async () => {
  await withTwo('open', async ({ greedy, modest }) => {
    const passed = () => Number(/^ *up0:(?: +\d+){9} +(\d+)/m.exec(lab.inHost('cat', '/proc/net/dev'))?.[1]);
    const before = passed();
    const startedAt = performance.now();
    const sending = attempt(
      greedy,
      `
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((OTHER, 7001))
for n in range(200000):
    try: s.send(b'x')
    except OSError: pass
print('sent', 200000)
`,
    );
    expect(counted(await attempt(modest, conversations(100)), 'answered')).toBe(100);
    expect(counted(await sending, 'sent')).toBe(200_000);
    const seconds = (performance.now() - startedAt) / 1000;
    const arrived = passed() - before;
    expect(arrived).toBeGreaterThan(packetsOut.burst);
    expect(arrived).toBeLessThanOrEqual(packetsOut.burst + Math.ceil(seconds * packetsOut.perSecond) + 3000);
  });
}, 120_000);

test('egress connections: one sandbox has as many as it may, and the others theirs', async () => {
  await withTwo('names', async ({ greedy, modest }) => {
    const holding = attempt(
      greedy,
      `
kept = many(3000, lambda _: connected(ALLOWED, 80, b'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\n', wait=0.3), seconds=8)
time.sleep(2)
open_ = 0
for s in kept:
    s.setblocking(False)
    try: open_ += s.recv(1) != b''
    except BlockingIOError: open_ += 1
    except OSError: pass
print('open', open_)
hold()
`,
    );
    await isHeld(greedy);
    expect(counted(await attempt(modest, pages(50)), 'served')).toBe(50);
    expect(hostReaches(20)).toBe(20);
    await goOn(greedy);
    const open = counted(await holding, 'open');
    expect(open).toBeGreaterThan(connectionsMax / 4);
    expect(open).toBeLessThanOrEqual(connectionsMax);
  });
}, 120_000);

test('egress CPU: heads that once cost seconds cost what others of their length do', async () => {
  await withTwo('names', async ({ greedy, modest }) => {
    const spentOn = async (filler: string) => {
      const before = proxyCpuMs();
      await attempt(
        greedy,
        `
for _ in range(6):
    for length in (65000, 15000):
        # Refused before all of it is sent, where the sender is slow.
        try: tcp(ALLOWED, 80, b'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\nX: a' + b'${filler}' * length + b'b\\r\\n\\r\\n')
        except ConnectionResetError: pass
`,
      );
      return proxyCpuMs() - before;
    };
    const ordinary = await spentOn('a');
    // One of them alone took eight seconds. The rest is for the processor's other work.
    expect(await spentOn(' ')).toBeLessThan(3 * ordinary + 500);
    expect(counted(await attempt(modest, pages(20)), 'served')).toBe(20);
  });
}, 120_000);

test('egress CPU: while one sandbox sends all it can, another is served', async () => {
  await withTwo('names', async ({ greedy, modest }) => {
    const flooding = attempt(
      greedy,
      `
import threading
def flood():
    end = time.time() + 6
    while time.time() < end:
        try:
            s = connected(ALLOWED, 80)
            while time.time() < end:
                s.sendall(b'POST /size HTTP/1.1\\r\\nHost: allowed.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n' + b'1\\r\\nx\\r\\n' * 5000 + b'0\\r\\n\\r\\n'); s.recv(4000)
        except OSError: pass
threads = [threading.Thread(target=flood) for _ in range(32)]
for t in threads: t.start()
open('/taken', 'w').close()
for t in threads: t.join()
`,
    );
    await isHeld(greedy);
    expect(counted(await attempt(modest, pages(10)), 'served')).toBe(10);
    await flooding;
    expect((await lab.logged()).filter(line => /egress proxy/.test(line))).toEqual([]);
  });
}, 120_000);

test('DNS: one sandbox has as many connections as it may, and the others are answered', async () => {
  await withTwo('names', async ({ greedy, modest }) => {
    const asking = attempt(
      greedy,
      `
import threading
kept = many(300, lambda _: connected(RESOLVER, 53, b'\\0', wait=0.5))
time.sleep(1)
open_ = 0
for s in kept:
    s.setblocking(False)
    try: open_ += s.recv(1) != b''
    except BlockingIOError: open_ += 1
    except OSError: pass
print('open', open_)
open('/taken', 'w').close()
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.time() + 4
n = 0
while time.time() < end:
    n += 1
    try: u.sendto(question(f'n{n}.wild.test'), (RESOLVER, 53))
    except OSError: pass
`,
    );
    await isHeld(greedy);
    expect(
      counted(
        await attempt(
          modest,
          `
answered = 0
for n in range(20):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); s.sendto(question(f'm{n}.wild.test'), (RESOLVER, 53))
    answered += len(s.recv(1000)) > 30
for n in range(5):
    q = question(f't{n}.wild.test'); s = connected(RESOLVER, 53, struct.pack('>H', len(q)) + q, wait=5)
    answered += len(s.recv(1000)) > 30
print('answered', answered)
`,
        ),
        'answered',
      ),
    ).toBe(25);
    expect(counted(await asking, 'open')).toBe(dnsConnectionsMax);
    expect(hostReaches(20)).toBe(20);
  });
}, 120_000);

test('a proxy that stands still costs nobody a kill or an update, and is replaced', async () => {
  await withTwo('names', async ({ greedy, modest, elsewhere }) => {
    await attempt(greedy, pages(1));
    const pids = proxyPids();
    expect(pids.length).toBe(proxyCount());
    const [stopped = 0] = pids;
    process.kill(stopped, 'SIGSTOP');
    // Those of the other proxies go on as if nothing had happened.
    expect(counted(await attempt(elsewhere, pages(10)), 'served')).toBe(10);
    const killed = lab.kill(greedy).then(() => proxyPids().includes(stopped));
    expect(await killed).toBe(true);
    await lab.update(modest, { internetAccess: true, denyOut: ['0.0.0.0/0'], allowOut: ['www.allowed.test'] });
    expect(counted(await attempt(modest, pages(3)), 'served')).toBe(0);
    // What the stalled proxy was told holds in its successor.
    await lab.update(modest, policies.names.policy);
    await until(async () => !proxyPids().includes(stopped) && proxyPids().length === pids.length);
    await until(async () => counted(await attempt(modest, pages(1)), 'served') === 1);
    expect((await lab.logged()).filter(line => /replaced|started again/.test(line)).length).toBeGreaterThan(0);
    return [modest];
  });
}, 120_000);

test('a proxy that stands still is noticed without anybody asking', async () => {
  const [stopped = 0] = proxyPids();
  process.kill(stopped, 'SIGSTOP');
  await until(async () => proxyPids().length === proxyCount() && !proxyPids().includes(stopped), 4 * silentAfterMs);
  expect((await lab.logged()).some(line => line.includes('has stalled and is replaced'))).toBe(true);
}, 120_000);

type Two = { greedy: string; modest: string; elsewhere: string };

/**
 * Two sandboxes that share the first egress proxy, and one with another. `use` answers which of them are left if some
 * are gone.
 */
async function withTwo(policy: 'open' | 'names', use: (two: Two) => Promise<string[] | void>): Promise<void> {
  const made: { sandbox: string; slot: number }[] = [];
  const of = (proxy: number) => made.filter(({ slot }) => slot % proxyCount() === proxy).map(({ sandbox }) => sandbox);
  while (of(0).length < 2 || of(1).length < 1) {
    const before = new Set(slots());
    const sandbox = await lab.create(policies[policy].policy);
    made.push({ sandbox, slot: slots().find(slot => !before.has(slot)) ?? -1 });
  }
  await lab.logged();
  const [greedy = '', modest = ''] = of(0);
  const [elsewhere = ''] = of(1);
  const gone = (await use({ greedy, modest, elsewhere })) ? [greedy] : [];
  for (const { sandbox } of made) if (!gone.includes(sandbox)) await lab.kill(sandbox);
}

function slots(): number[] {
  return [...lab.inHost('ls', '/sys/class/net').matchAll(/^at\d+-(\d+)$/gm)].map(match => Number(match[1]));
}

async function attempt(sandbox: string, program: string): Promise<string> {
  const run = /\bhears\b/.test(program) ? lab.pythonOnLink : lab.python;
  const { exitCode, stdout, stderr } = await run(sandbox, `INSTALLATION = ${lab.installation}\n${prelude}\n${program}`);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return stdout;
}

/** Waits until a program in the sandbox says that it has taken all it can. */
const isHeld = (sandbox: string) =>
  until(async () => (await lab.run(sandbox, 'test -e /taken')).exitCode === 0, 60_000);

/** Makes the program of `hold()` go on. */
async function goOn(sandbox: string): Promise<void> {
  expect((await lab.run(sandbox, 'touch /go')).exitCode).toBe(0);
}

/** The number that a program printed after a word. */
function counted(output: string, word: string): number {
  const number = new RegExp(`^${word} (\\d+)$`, 'm').exec(output)?.[1];
  if (number === undefined) throw new Error(`no ${word} in ${output}`);
  return Number(number);
}

/** Datagrams from separate sockets that come back. */
function conversations(count: number): string {
  return `
answered = 0
for n in range(${count}):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(${count > 20 ? 3 : 0.2}); s.sendto(b'x', (OTHER, 7000))
    try: answered += s.recv(10) == b'x'
    except OSError: pass
    s.close()
print('answered', answered)
`;
}

/** Pages that the proxy fetches, on separate connections. */
function pages(count: number): string {
  return `
served = 0
for n in range(${count}):
    try:
        s = connected(ALLOWED, 80, b'GET / HTTP/1.1\\r\\nHost: allowed.test\\r\\nConnection: close\\r\\n\\r\\n', wait=10)
        page = b''
        while part := s.recv(4000): page += part
        served += b'page of allowed' in page
        s.close()
    except OSError: pass
print('served', served)
`;
}

/** Connections that the host itself can make. */
function hostReaches(count: number): number {
  const program = `for i in $(seq ${count}); do (exec 3<>/dev/tcp/203.0.113.11/7000) 2>/dev/null && echo reached; done`;
  return lab
    .inHost('bash', '-c', program)
    .split('\n')
    .filter(line => line === 'reached').length;
}

/** What is tracked once the connections of ended sandboxes are forgotten: only a few, of the host's own. */
async function trackedAtRest(): Promise<number> {
  await until(async () => trackedNow() < 100);
  return trackedNow();
}

/**
 * What is tracked and not over. The kernel scans its table at least once a minute and then drops expired entries;
 * reading the table makes it do so at once.
 */
function trackedNow(): number {
  lab.inHost('sh', '-c', 'cat /proc/net/nf_conntrack > /dev/null');
  return tracked();
}

function tracked(): number {
  return Number(lab.inHost('cat', '/proc/sys/net/netfilter/nf_conntrack_count'));
}

function neighbours(): string[] {
  return lab.inHost('ip', 'neigh', 'show').split('\n').filter(Boolean);
}

/** The lab's egress proxies, the first one first. */
function proxyPids(): number[] {
  const ports = Array.from({ length: proxyCount() }, (_, index) => proxyPort + index);
  expect(resolverPort).not.toBe(proxyPort);
  return ports.flatMap(port =>
    [...lab.inHost('ss', '-Hltnp', `sport = :${port}`).matchAll(/pid=(\d+)/g)].map(match => Number(match[1])),
  );
}

function proxyCpuMs(): number {
  return proxyPids().reduce((sum, pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return sum + (Number(fields[11]) + Number(fields[12])) * 10;
  }, 0);
}

async function until(condition: () => Promise<boolean>, timeoutMs = 20_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('it did not come to that in time');
    await Bun.sleep(100);
  }
}
