import { afterAll, beforeAll, expect, test } from 'bun:test';
import { addresses } from './support/addresses.ts';
import { waitFor } from '../support/process.ts';
import { startLab, type Lab } from './support/lab.ts';

let lab: Lab;
beforeAll(async () => (lab = await startLab()), 120_000);
afterAll(() => lab.dispose(), 120_000);

const secret = 'Bearer s3cret-value';
const headerRules = {
  'allowed.test': { Authorization: secret, 'X-Added': 'yes' },
  '*.wild.test': { 'X-Which': 'wide' },
  '*.b.wild.test': { 'X-Which': 'narrow' },
  'impostor.test': { Authorization: secret },
};
const open = { internetAccess: true, headerRules };
const headers = async (sandbox: string, url: string, ...options: string[]) => {
  const { exitCode, stdout, stderr } = await lab.run(sandbox, `curl -sS --max-time 5 ${options.join(' ')} ${url}`);
  return exitCode === 0 ? (JSON.parse(stdout) as Record<string, string>) : stderr;
};

test("requests leave with the rule's headers in place of their own, by HTTPS that the sandbox trusts, and by HTTP", async () => {
  const sandbox = await lab.create(open);
  for (const scheme of ['https', 'http']) {
    expect(
      await headers(sandbox, `${scheme}://allowed.test/headers`, '-H "authorization: mine"', '-H "X-Own: kept"'),
    ).toMatchObject({ authorization: secret, 'x-added': 'yes', 'x-own': 'kept', host: 'allowed.test' });
  }
  expect(await headers(sandbox, 'https://a.wild.test/headers', '-k')).toMatchObject({ 'x-which': 'wide' });
  expect(await headers(sandbox, 'https://a.b.wild.test/headers', '-k')).not.toHaveProperty('authorization');
  await lab.kill(sandbox);
});

test('the programs of a sandbox trust the authority: curl, Python, Node.js, OpenSSL', async () => {
  const sandbox = await lab.create(open);
  expect(
    (
      await lab.python(
        sandbox,
        `import urllib.request; print(urllib.request.urlopen('https://allowed.test/headers').read().decode())`,
      )
    ).stdout,
  ).toContain(secret);
  expect(
    (
      await lab.run(
        sandbox,
        `node -e "fetch('https://allowed.test/headers').then(r => r.text()).then(console.log, e => console.log(e.cause))"`,
      )
    ).stdout,
  ).toContain(secret);
  expect(
    (
      await lab.run(
        sandbox,
        'echo | openssl s_client -connect allowed.test:443 -servername allowed.test -verify_return_error 2>&1 | grep "Verify return code"',
      )
    ).stdout,
  ).toContain('0 (ok)');
  await lab.kill(sandbox);
});

test('other hosts are left alone: their own certificate, their own requests', async () => {
  const sandbox = await lab.create(open);
  const seen = await headers(sandbox, 'https://other.test/headers', '-k', '-H "Authorization: mine"');
  expect(seen).toMatchObject({ authorization: 'mine' });
  expect(
    (
      await lab.run(
        sandbox,
        'echo | openssl s_client -connect other.test:443 -servername other.test 2>/dev/null | openssl x509 -noout -issuer',
      )
    ).stdout,
  ).toContain('Authority of the lab');
  expect((await lab.run(sandbox, `curl -sS --max-time 5 http://${addresses.anycast}/`)).stdout).toBe(
    'page of anycast\n',
  );
  expect(
    (await lab.run(sandbox, `exec 3<>/dev/tcp/${addresses.other}/7000; head -n 1 <&3`.replace(/^/, "bash -c '") + "'"))
      .stdout,
  ).toBe('hello from other\n');
  await lab.kill(sandbox);
});

test('a rule grants no access, and an allow of the name does', async () => {
  const sandbox = await lab.create({ internetAccess: false, headerRules });
  expect(
    typeof (await headers(sandbox, 'https://allowed.test/headers', `--resolve allowed.test:443:${addresses.allowed}`)),
  ).toBe('string');
  await lab.update(sandbox, { internetAccess: false, allowOut: ['allowed.test'], headerRules });
  expect(await headers(sandbox, 'https://allowed.test/headers')).toMatchObject({ authorization: secret });
  // Under the default, a rule does not open what an address denies.
  await lab.update(sandbox, { internetAccess: true, denyOut: [`${addresses.allowed}/32`], headerRules });
  expect(
    typeof (await headers(sandbox, 'https://allowed.test/headers', `--resolve allowed.test:443:${addresses.other}`)),
  ).toBe('string');
  await lab.kill(sandbox);
});

test('the values go to the named host alone', async () => {
  const sandbox = await lab.create({ ...open, allowOut: ['0.0.0.0/0'] });
  await lab.visits();
  const attempts = [
    // The address of another server under the rule's name: the request goes to the name's own address.
    `curl -sS --max-time 3 --resolve allowed.test:443:${addresses.attacker} https://allowed.test/headers`,
    `curl -sS --max-time 3 --resolve allowed.test:80:${addresses.attacker} http://allowed.test/headers`,
    // A server that can't prove its name.
    'curl -skS --max-time 3 https://impostor.test/headers',
    // Another host inside the connection.
    'curl -sS --max-time 3 -H "Host: attacker.test" https://allowed.test/headers',
    'curl -sS --max-time 3 -H "Host: attacker.test" http://allowed.test/headers',
    // On another port nothing is added.
    'curl -sS --max-time 3 http://allowed.test:7000/headers',
  ];
  for (const attempt of attempts) await lab.run(sandbox, attempt);
  const seen = await lab.visits();
  expect(
    seen.filter(({ service }) => service.includes('attacker')).map(({ service, detail }) => `${service} ${detail}`),
  ).toEqual([]);
  const there = await headers(
    sandbox,
    'http://allowed.test/headers',
    '-H "Host: attacker.test"',
    `--connect-to allowed.test:80:${addresses.attacker}:80`,
  );
  expect(JSON.stringify(there)).not.toContain(secret);
  expect(
    (await lab.run(sandbox, `grep -rlE "s3cret-value" /run /etc /proc/*/environ /tmp /var 2>/dev/null | head`)).stdout,
  ).toBe('');
  // The server echoes them, and programs print that: not even then.
  await lab.run(sandbox, 'echo that was all');
  const history = await waitFor('what they print to be in the log', async () => {
    const lines = (await lab.history(sandbox)).join('\n');
    return lines.includes('that was all') && lines;
  });
  expect(history).toContain('***');
  expect(history + (await lab.logged()).join('')).not.toContain('s3cret');
  await lab.kill(sandbox);
});

test("QUIC is closed, so that requests can't go past the rules", async () => {
  const sandbox = await lab.create(open);
  const { stdout } = await lab.python(
    sandbox,
    `
import socket
for port in (443, 7000):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
    try: s.sendto(b'x', ('${addresses.other}', port)); print(port, s.recv(10))
    except (OSError, socket.timeout) as e: print(port, type(e).__name__)
`,
  );
  expect(stdout).toBe("443 TimeoutError\n7000 b'x'\n");
  await lab.kill(sandbox);
});

test('bodies, many requests and WebSockets pass opened connections', async () => {
  const sandbox = await lab.create(open);
  await lab.run(sandbox, 'head -c 5000000 /dev/zero > /tmp/body');
  const post = (options: string) =>
    lab.run(sandbox, `curl -sS --max-time 9 --data-binary @/tmp/body ${options} https://allowed.test/size`);
  expect((await post('')).stdout).toBe('5000000\n');
  expect((await post('-H "Transfer-Encoding: chunked"')).stdout).toBe('5000000\n');
  expect((await lab.run(sandbox, 'curl -sS --max-time 20 https://allowed.test/big | wc -c')).stdout).toBe(
    `${64 << 20}\n`,
  );
  await lab.visits();
  expect(
    (await lab.run(sandbox, `curl -sS --max-time 5 ${'https://allowed.test/ '.repeat(20)} -w '%{num_connects}'`))
      .stdout,
  ).toBe(`${'page of allowed\n1'}${'page of allowed\n0'.repeat(19)}`);
  const echoed = await lab.python(
    sandbox,
    String.raw`
import socket, ssl
s = ssl.create_default_context().wrap_socket(socket.create_connection(('allowed.test', 443), 5), server_hostname='allowed.test')
s.sendall(b'GET /websocket HTTP/1.1\r\nHost: allowed.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n')
print(s.recv(1000).split(b'\r\n')[0].decode())
s.sendall(b'\x81\x84' + bytes(4) + b'over'); print(s.recv(100)[2:].decode())
`,
  );
  expect(echoed.stdout).toBe('HTTP/1.1 101 Switching Protocols\nover\n');
  await lab.kill(sandbox);
});

test('new values hold from the next request on, on connections that exist too', async () => {
  const sandbox = await lab.create(open);
  await lab.visits();
  const asking = lab.python(
    sandbox,
    String.raw`
import http.client, json, time
c = http.client.HTTPSConnection('allowed.test', timeout=5)
seen = []
for i in range(40):
    c.request('GET', '/headers'); value = json.loads(c.getresponse().read()).get('x-added')
    if value not in seen: seen.append(value)
    time.sleep(0.05)
print(seen)
`,
  );
  const visits: unknown[] = [];
  while (visits.length < 3) visits.push(...(await lab.visits()).filter(({ service }) => service === 'https allowed'));
  await lab.update(sandbox, { internetAccess: true, headerRules: { 'allowed.test': { 'X-Added': 'no' } } });
  expect((await asking).stdout).toBe("['yes', 'no']\n");
  await lab.kill(sandbox);
});
