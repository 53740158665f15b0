import { afterAll, beforeAll, expect, test } from 'bun:test';
import { addresses } from './support/addresses.ts';
import { startLab, type Lab } from './support/lab.ts';

let lab: Lab;
beforeAll(async () => (lab = await startLab()), 120_000);
afterAll(() => lab.dispose(), 120_000);

const egressProxy = { address: `${addresses.socks}:1080` };
const open = { internetAccess: true, egressProxy };
const get = (url: string, ...options: string[]) => `curl -sSk --max-time 5 ${options.join(' ')} ${url}`;
const echo = (address: string) =>
  `import socket; s = socket.create_connection(('${address}', 7000), 5); print(s.recv(100).decode(), end='')`;
/** The requests to the SOCKS5 servers, and the servers that saw the machine itself. */
const visited = async () => {
  const visits = (await lab.visits()).filter(({ service }) => !service.startsWith('dns'));
  return {
    asked: visits.filter(({ service }) => service.startsWith('socks')).map(({ detail }) => detail),
    direct: visits.filter(({ from }) => from === '192.0.2.2').map(({ service }) => service),
  };
};

test('every TCP connection goes through the SOCKS5 server, names unresolved, and no other traffic goes past it', async () => {
  const sandbox = await lab.create(open);
  expect((await lab.run(sandbox, get('http://allowed.test/'))).stdout).toBe('page of allowed\n');
  expect((await lab.run(sandbox, get('https://a.wild.test/'))).stdout).toBe('page of wild\n');
  expect((await lab.python(sandbox, echo(addresses.other))).stdout).toBe('hello from other\n');
  const { stdout } = await lab.python(
    sandbox,
    `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)
try: s.sendto(b'x', ('${addresses.other}', 7000)); print(s.recv(10))
except (OSError, socket.timeout) as e: print(type(e).__name__)`,
  );
  expect(stdout).toBe('TimeoutError\n');
  expect(await visited()).toEqual({
    asked: ['allowed.test:80', 'a.wild.test:443', `${addresses.other}:7000`],
    direct: [],
  });
  await lab.kill(sandbox);
});

test('a server with a login gets the credentials, and wrong ones lead nowhere', async () => {
  const proxied = (password: string) => ({
    internetAccess: true,
    egressProxy: { address: 'socks.test:1081', username: 'user', password },
  });
  const sandbox = await lab.create(proxied('secret'));
  await visited();
  expect((await lab.run(sandbox, get('http://allowed.test/'))).stdout).toBe('page of allowed\n');
  expect(await visited()).toEqual({ asked: ['allowed.test:80'], direct: [] });
  await lab.update(sandbox, proxied('wrong'));
  expect((await lab.run(sandbox, get('http://allowed.test/'))).exitCode).not.toBe(0);
  expect(await visited()).toEqual({ asked: [], direct: [] });
  await lab.kill(sandbox);
});

test('the policy decides before the SOCKS5 server is asked', async () => {
  const sandbox = await lab.create({
    internetAccess: true,
    denyOut: ['0.0.0.0/0'],
    allowOut: ['allowed.test', addresses.other],
    egressProxy,
  });
  await visited();
  expect((await lab.run(sandbox, get('https://allowed.test/'))).exitCode).toBe(0);
  expect((await lab.python(sandbox, echo(addresses.other))).stdout).toBe('hello from other\n');
  for (const url of [
    'https://other.test/',
    'http://a.wild.test/',
    `http://${addresses.anycast}/`,
    'http://10.0.0.5/',
    'http://169.254.169.254/',
  ]) {
    expect(
      (
        await lab.run(
          sandbox,
          get(
            url,
            '--resolve',
            `other.test:443:${addresses.attacker}`,
            '--resolve',
            `a.wild.test:80:${addresses.wild}`,
          ),
        )
      ).exitCode,
    ).not.toBe(0);
  }
  expect((await lab.python(sandbox, echo(addresses.attacker))).stdout).toBe('');
  expect(await visited()).toEqual({ asked: ['allowed.test:443', `${addresses.other}:7000`], direct: [] });
  await lab.kill(sandbox);
});

test('where only addresses are allowed no name is looked up, as each question would go to whoever answers for it', async () => {
  const closed = { allowOut: [addresses.other], egressProxy };
  const names = ['secret.attacker.test', 'allowed.test', 'headed.test'];
  for (const policy of [
    { ...closed, internetAccess: false },
    { ...closed, internetAccess: true, denyOut: ['0.0.0.0/0'] },
    { ...closed, internetAccess: false, headerRules: { 'headed.test': { 'X-Added': 'yes' } } },
  ]) {
    const sandbox = await lab.create(policy);
    await lab.visits();
    for (const name of names) await lab.run(sandbox, get(`http://${name}/`));
    const questions = (await lab.visits()).filter(({ service }) => service.startsWith('dns'));
    const asked = new Set(questions.map(({ detail }) => detail.split(' ')[0]));
    expect([...asked]).toEqual('headerRules' in policy ? ['headed.test'] : []);
    expect((await lab.python(sandbox, echo(addresses.other))).stdout).toBe('hello from other\n');
    await lab.kill(sandbox);
  }
});

test('a policy that denies addresses sends addresses on, which it has seen', async () => {
  const sandbox = await lab.create({ internetAccess: true, denyOut: [addresses.attacker], egressProxy });
  await visited();
  expect((await lab.run(sandbox, get('http://allowed.test/'))).exitCode).toBe(0);
  expect(
    (await lab.run(sandbox, get('http://attacker.test/', '--resolve', `attacker.test:80:${addresses.allowed}`)))
      .exitCode,
  ).toBe(0);
  expect(await visited()).toEqual({ asked: [`${addresses.allowed}:80`, `${addresses.allowed}:80`], direct: [] });
  await lab.kill(sandbox);
});

test('a SOCKS5 server at a protected address is not asked', async () => {
  const before = await lab.strays();
  for (const address of ['10.0.0.5:1080', 'internal-socks.test:1080', '192.0.2.2:1080', '127.0.0.1:1080']) {
    const sandbox = await lab.create({ internetAccess: true, egressProxy: { address } });
    expect((await lab.run(sandbox, get('http://allowed.test/'))).exitCode).not.toBe(0);
    await lab.kill(sandbox);
  }
  expect(await lab.strays()).toBe(before);
});

test('headers are added on the way through', async () => {
  const sandbox = await lab.create({ ...open, headerRules: { 'allowed.test': { 'X-Added': 'yes' } } });
  await visited();
  expect((await lab.run(sandbox, 'curl -sS --max-time 5 https://allowed.test/headers')).stdout).toContain(
    '"x-added":"yes"',
  );
  expect((await visited()).asked).toEqual(['allowed.test:443']);
  await lab.kill(sandbox);
});

test('a change of the server cuts what goes through the old one', async () => {
  const sandbox = await lab.create(open);
  const held = lab.python(
    sandbox,
    `
import socket
try:
    s = socket.create_connection(('${addresses.other}', 7000), 8)
    while s.recv(100): pass
    print('ended')
except ConnectionError: print('cut')
except socket.timeout: print('kept')`,
  );
  const seen: unknown[] = [];
  while (seen.length === 0) seen.push(...(await visited()).asked);
  await lab.update(sandbox, {
    internetAccess: true,
    egressProxy: { address: `${addresses.socks}:1081`, username: 'user', password: 'secret' },
  });
  expect((await held).stdout).toMatch(/^(cut|ended)\n$/);
  await lab.kill(sandbox);
});
