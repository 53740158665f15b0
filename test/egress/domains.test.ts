import { afterAll, beforeAll, expect, test } from 'bun:test';
import { userIdOf } from '../../src/base/process/part-users.ts';
import { slotOf } from '../../src/node/layout.ts';
import { addresses, hostPublic, hostUplink } from './support/addresses.ts';
import { startLab, type Lab } from './support/lab.ts';

let lab: Lab;
beforeAll(async () => (lab = await startLab()), 120_000);
afterAll(() => lab.dispose(), 120_000);

const policy = { internetAccess: true, denyOut: ['0.0.0.0/0'], allowOut: ['allowed.test', '*.wild.test'] };
const get = (url: string, ...options: string[]) => `curl -sS -k --max-time 5 ${options.join(' ')} ${url}`;
const visited = async () =>
  (await lab.visits())
    .filter(({ service }) => !service.startsWith('dns'))
    .map(({ service, detail }) => `${service} ${detail}`);

test('allowed names are reached by HTTP and HTTPS, others are not', async () => {
  const sandbox = await lab.create(policy);
  for (const url of [
    'http://allowed.test/',
    'https://allowed.test/',
    'http://a.wild.test/',
    'https://b.wild.test/',
    'https://ALLOWED.test./',
  ]) {
    expect(await lab.run(sandbox, get(url))).toMatchObject({ exitCode: 0 });
  }
  for (const url of [
    'http://other.test/',
    'https://other.test/',
    'http://www.allowed.test/',
    'http://wild.test/',
    'https://a.b.attacker.test/',
    `http://${addresses.other}/`,
    `https://${addresses.allowed}/`,
  ]) {
    expect(await lab.run(sandbox, get(url))).not.toMatchObject({ exitCode: 0 });
  }
  expect((await visited()).map(visit => visit.split(' ').slice(0, 2).join(' '))).toEqual([
    'http allowed',
    'https allowed',
    'http wild',
    'https wild',
    'https allowed',
  ]);
  await lab.kill(sandbox);
});

test('only allowed names can be looked up, so that questions carry nothing out', async () => {
  const sandbox = await lab.create(policy);
  await lab.visits();
  expect((await lab.run(sandbox, resolve('allowed.test'))).stdout).toBe(`${addresses.allowed}\n`);
  for (const name of ['secret.attacker.test', 'other.test', 'test', 'xallowed.test'])
    expect((await lab.run(sandbox, resolve(name))).exitCode).not.toBe(0);
  expect((await lab.visits()).map(({ service, detail }) => `${service} ${detail}`)).toEqual([
    `dns ${addresses.publicResolver} allowed.test 1`,
  ]);
  await lab.kill(sandbox);
});

test('long answers come by TCP', async () => {
  const sandbox = await lab.create({ ...policy, allowOut: ['*.allowed.test'] });
  const { stdout } = await lab.python(
    sandbox,
    String.raw`
import socket, struct
question = struct.pack('>6H', 7, 0x100, 1, 0, 0, 0) + b'\x04long\x07allowed\x04test\x00' + struct.pack('>2H', 16, 1)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.settimeout(5); udp.sendto(question, ('8.8.8.8', 53))
answer = udp.recv(4096); print('cut', answer[2] >> 1 & 1, struct.unpack('>H', answer[:2])[0])
tcp = socket.create_connection(('8.8.8.8', 53), 5); tcp.sendall(struct.pack('>H', len(question)) + question)
length = struct.unpack('>H', tcp.recv(2, socket.MSG_WAITALL))[0]
answer = tcp.recv(length, socket.MSG_WAITALL); print('whole', struct.unpack('>H', answer[6:8])[0])
`,
  );
  expect(stdout).toBe('cut 1 7\nwhole 20\n');
  await lab.kill(sandbox);
});

test('HTTP passes as it should: methods, bodies, chunks, continuations, many requests on a connection, WebSockets', async () => {
  const sandbox = await lab.create(policy);
  await lab.run(sandbox, 'head -c 3000000 /dev/zero > /tmp/body');
  expect((await lab.run(sandbox, get('http://allowed.test/size', '--data-binary @/tmp/body'))).stdout).toBe(
    '3000000\n',
  );
  expect(
    (
      await lab.run(
        sandbox,
        get('http://allowed.test/size', '--data-binary @/tmp/body', "-H 'Transfer-Encoding: chunked'"),
      )
    ).stdout,
  ).toBe('3000000\n');
  expect(
    (await lab.run(sandbox, get('http://allowed.test/size', '--data-binary @/tmp/body', "-H 'Expect: 100-continue'")))
      .stdout,
  ).toBe('3000000\n');
  expect((await lab.run(sandbox, get('http://allowed.test/', '-I'))).stdout).toStartWith('HTTP/1.1 200');
  expect((await lab.run(sandbox, get('http://allowed.test/', '--http2'))).stdout).toBe('page of allowed\n');
  expect((await lab.run(sandbox, get('http://allowed.test/', '--http1.0'))).stdout).toBe('page of allowed\n');
  expect((await lab.run(sandbox, `${get('http://allowed.test/big')} | wc -c`)).stdout).toBe(`${64 << 20}\n`);
  expect((await lab.run(sandbox, `${get('https://allowed.test/big')} | wc -c`)).stdout).toBe(`${64 << 20}\n`);
  await lab.visits();
  expect(
    (await lab.run(sandbox, `curl -sS --max-time 5 ${'http://allowed.test/ '.repeat(20)} -w '%{num_connects}'`)).stdout,
  ).toMatch(/^(page of allowed\n[01]?)+$/);
  expect((await visited()).length).toBe(20);
  const echoed = await lab.python(
    sandbox,
    String.raw`
import socket
s = socket.create_connection(('allowed.test', 80), 5)
s.sendall(b'GET /websocket HTTP/1.1\r\nHost: allowed.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n')
print(s.recv(1000).split(b'\r\n')[0].decode())
s.sendall(b'\x81\x84' + bytes(4) + b'over'); print(s.recv(100)[2:].decode())
`,
  );
  expect(echoed.stdout).toBe('HTTP/1.1 101 Switching Protocols\nover\n');
  await lab.kill(sandbox);
});

test('an update cuts connections to names that are denied from now on, and no others', async () => {
  const sandbox = await lab.create(policy);
  await lab.visits();
  const hold = (name: string) =>
    lab.python(
      sandbox,
      String.raw`
import socket, ssl
s = ssl._create_unverified_context().wrap_socket(socket.create_connection(('${name}', 443)), server_hostname='${name}'); s.settimeout(2)
s.sendall(b'GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n'); s.recv(1000); print('up', flush=True)
try: print('ended' if s.recv(1000) == b'' else 'data')
except (ConnectionError, ssl.SSLError): print('cut')
except socket.timeout: print('kept')
`,
    );
  const visits: string[] = [];
  const held = [hold('allowed.test'), hold('a.wild.test')] as const;
  await until(async () => visits.push(...(await visited())) >= 2);
  await lab.update(sandbox, { ...policy, allowOut: ['*.wild.test', 'other.test'] });
  expect((await held[0]).stdout).toMatch(/^up\n(cut|ended)\n$/);
  expect((await held[1]).stdout).toBe('up\nkept\n');
  expect((await lab.run(sandbox, get('https://allowed.test/'))).exitCode).not.toBe(0);
  expect((await lab.run(sandbox, get('https://other.test/'))).exitCode).toBe(0);
  await lab.update(sandbox, { internetAccess: true });
  expect((await lab.run(sandbox, get('https://allowed.test/'))).exitCode).toBe(0);
  await lab.kill(sandbox);
});

test('a connection that was made by name is cut by a policy without names, also when another came between', async () => {
  const sandbox = await lab.create(policy);
  await lab.visits();
  const held = lab.python(
    sandbox,
    String.raw`
import socket, ssl
s = ssl._create_unverified_context().wrap_socket(socket.create_connection(('allowed.test', 443)), server_hostname='allowed.test'); s.settimeout(4)
s.sendall(b'GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n'); s.recv(1000); print('up', flush=True)
try: print('ended' if s.recv(1000) == b'' else 'data')
except (ConnectionError, ssl.SSLError): print('cut')
except socket.timeout: print('kept')
`,
  );
  await until(async () => (await visited()).length >= 1);
  await lab.update(sandbox, { internetAccess: true });
  await lab.update(sandbox, { internetAccess: false });
  expect((await held).stdout).toMatch(/^up\n(cut|ended)\n$/);
  await lab.kill(sandbox);
});

test('names that lead to protected addresses lead nowhere', async () => {
  const sandbox = await lab.create(policy);
  const before = await lab.strays();
  for (const name of [
    'private',
    'loopback',
    'any',
    'metadata',
    'host',
    'gateway',
    'neighbour',
    'proxy',
    'broadcast',
    'multicast',
    'alias',
  ]) {
    for (const scheme of ['http', 'https'])
      expect((await lab.run(sandbox, get(`${scheme}://${name}.wild.test/`))).exitCode).not.toBe(0);
  }
  // Of several addresses, the permitted ones are tried.
  expect((await lab.run(sandbox, get('http://mixed.wild.test/'))).stdout).toBe('page of wild\n');
  expect(await lab.strays()).toBe(before);
  await lab.kill(sandbox);
});

test('denied names are counted and logged with their rule', async () => {
  const sandbox = await lab.create(policy);
  await lab.run(
    sandbox,
    `${get('https://other.test/', `--resolve other.test:443:${addresses.other}`)}; ${get('http://other.test/', `--resolve other.test:80:${addresses.allowed}`)}; ${resolve('other.test')}`,
  );
  let messages: string[] = [];
  await until(
    async () => (messages = (await lab.history(sandbox)).filter(message => message.startsWith('denied'))).length >= 3,
  );
  for (const port of [443, 80, 53])
    expect(messages).toContain(`denied: host other.test port ${port} by rule denyOut 0.0.0.0/0`);
  expect((await lab.traffic(sandbox)).denied).toBeGreaterThanOrEqual(3);
  await lab.kill(sandbox);
});

test('names are decided about again after a restart of the node, and of the proxy alone', async () => {
  const sandbox = await lab.create(policy);
  await lab.restart();
  expect((await lab.run(sandbox, get('https://allowed.test/'))).exitCode).toBe(0);
  expect((await lab.run(sandbox, get('https://other.test/'))).exitCode).not.toBe(0);
  const [pid = 0] = await proxies();
  process.kill(pid, 'SIGKILL');
  await until(async () => (await proxies()).some(other => other !== pid));
  expect(
    (await lab.run(sandbox, `${get('https://allowed.test/', '--retry 20 --retry-delay 1 --retry-all-errors')}`))
      .exitCode,
  ).toBe(0);
  expect((await lab.run(sandbox, get('https://other.test/'))).exitCode).not.toBe(0);
  await lab.kill(sandbox);
});

test('the proxy runs as a user that owns nothing, without capabilities', async () => {
  const [pid = 0] = await proxies();
  const status = lab.inHost('cat', `/proc/${pid}/status`);
  expect(status).toMatch(/^Uid:\t(18790[\d]+)\t\1\t\1\t\1$/m);
  expect(status).toMatch(/^CapEff:\t0+$/m);
  expect(status).toMatch(/^NoNewPrivs:\t1$/m);
  expect(status).toMatch(/^Groups:\t *$/m);
  // It applies per thread: the runtime's threads existed before it gave up root.
  const threads = lab.inHost('sh', '-c', `cat /proc/${pid}/task/*/status`);
  expect(new Set(threads.match(/^NoNewPrivs:\t\d$/gm))).toEqual(new Set(['NoNewPrivs:\t1']));
});

test('the user of the proxy reaches name servers, and by addresses that stand for sandboxes public ones', async () => {
  const user = userIdOf('egress', lab.installation);
  // A compromised proxy would choose the address that it connects from.
  const reach = (from: string, to: string, port: number) => {
    const program = `import os, socket, encodings.idna
os.setgid(${user}); os.setuid(${user}); socket.create_connection(('${to}', ${port}), 2, ('${from}', 0))`;
    const run = `python3 -c "${program}" 2>/dev/null`;
    return lab.inHost('sh', '-c', `${run} && echo open || echo closed`).trim();
  };
  const own = slotOf(lab.installation, 1000).proxyAddress;
  expect(reach(own, addresses.allowed, 80)).toBe('open');
  expect(reach('0.0.0.0', addresses.publicResolver, 53)).toBe('open');
  for (const [address, port] of [
    ['127.0.0.1', 22],
    [hostUplink, 22],
    [hostPublic, 5432],
    ['10.0.0.5', 80],
    ['169.254.169.254', 80],
    [addresses.allowed, 80],
    [addresses.publicResolver, 80],
  ] as const)
    expect([address, reach('0.0.0.0', address, port)]).toEqual([address, 'closed']);
  for (const address of ['127.0.0.1', hostUplink]) expect(reach(own, address, 22)).toBe('closed');
});

test('the host keeps track of what a proxy asks a name server for seconds alone', async () => {
  const sandbox = await lab.create(policy);
  for (const name of ['tracked.wild.test', 'seen.wild.test'])
    expect((await lab.run(sandbox, `${resolve(name)}; ${get(`http://${name}/`)}`)).exitCode).toBe(0);
  const tracked = lab.inHost('sh', '-c', 'grep " udp " /proc/net/nf_conntrack || true');
  const asked = tracked
    .split('\n')
    .filter(line => line.includes(` src=${hostUplink} dst=${addresses.publicResolver} `));
  // The remaining time stands after the protocol's number.
  const left = asked.map(line => Number(/ udp +17 (\d+) /.exec(line)?.[1]));
  expect(left.length).toBeGreaterThan(0);
  expect(Math.max(...left)).toBeLessThanOrEqual(5);
  await lab.kill(sandbox);
});

/** Process IDs of the lab's proxies. */
async function proxies(): Promise<number[]> {
  const sockets = lab.inHost('ss', '-Hltnp', 'sport = :3128');
  return [...sockets.matchAll(/pid=(\d+)/g)].map(match => Number(match[1]));
}

function resolve(name: string): string {
  return `python3 -c "import socket; print(socket.gethostbyname('${name}'))"`;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await Bun.sleep(20);
}
