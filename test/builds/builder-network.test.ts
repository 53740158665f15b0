import { afterAll, beforeAll, expect, test } from 'bun:test';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { userIdOf } from '../../src/base/process/part-users.ts';
import { builderHostsAdded } from '../../src/node/network/rules/builder-hosts.ts';
import { hostTable } from '../../src/node/network/rules/host-table.ts';
import { waitFor } from '../support/process.ts';

// A host and its neighbours, in the test's own network namespaces. The rules are those of an installation number that
// no test uses.

const installation = 14;
const helperBinary = join(import.meta.dir, '../../dist/helper');
const [host, neighbours] = [`atoll-bh-${process.pid}`, `atoll-bn-${process.pid}`];
const scratch = mkdtempSync(join(tmpdir(), 'atoll-builder-net-'));
const listeners: Bun.Subprocess[] = [];

const open = ['93.184.216.34', '2606:2800:220:1::1'];
const closed = [
  '10.0.0.2',
  '169.254.169.254',
  '192.168.7.2',
  '100.64.0.2',
  '168.63.129.16',
  'fd00::2',
  'fe80::99%out',
  '2002:a00:2::1',
  '2001:0:1::1',
];
const own = ['127.0.0.1', '::1', '10.0.0.1', '93.184.216.1', '2606:2800:220:1::ff'];

function run(argv: string[], input = ''): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(argv, { stdin: Buffer.from(input) });
  if (exitCode !== 0) throw new Error(`${argv.join(' ')}: ${stderr}`);
  return stdout.toString();
}
const inHost = (...argv: string[]) => ['ip', 'netns', 'exec', host, ...argv];
const inNeighbours = (...argv: string[]) => ['ip', 'netns', 'exec', neighbours, ...argv];

beforeAll(async () => {
  for (const name of [host, neighbours]) run(['ip', 'netns', 'add', name]);
  run(['ip', '-n', host, 'link', 'add', 'out', 'type', 'veth', 'peer', 'name', 'in', 'netns', neighbours]);
  for (const [name, link] of [
    [host, 'out'],
    [neighbours, 'in'],
  ] as const)
    for (const up of ['lo', link]) run(['ip', '-n', name, 'link', 'set', up, 'up']);
  const add = (name: string, link: string, address: string) =>
    run(['ip', '-n', name, 'addr', 'add', address, 'dev', link, ...(address.includes(':') ? ['nodad'] : [])]);
  for (const address of ['10.0.0.1/24', '93.184.216.1/24', '2606:2800:220:1::ff/64', 'fe80::98/64'])
    add(host, 'out', address);
  for (const address of [...open, ...closed])
    add(
      neighbours,
      'in',
      `${address.split('%')[0]}/${address.startsWith('fe80') ? 64 : address.includes(':') ? 128 : 32}`,
    );
  for (const family of [[], ['-6']]) run(['ip', '-n', host, ...family, 'route', 'add', 'default', 'dev', 'out']);
  for (const family of [[], ['-6']]) run(['ip', '-n', neighbours, ...family, 'route', 'add', 'default', 'dev', 'in']);
  for (const inside of [inHost, inNeighbours])
    for (const port of ['80', '81'])
      listeners.push(
        Bun.spawn(inside('busybox', 'nc', '-ll', '-p', port, '-e', 'true'), { stdout: 'ignore', stderr: 'ignore' }),
      );
  mkdirSync(join(scratch, 'sh'));
  copyFileSync('/usr/bin/busybox', join(scratch, 'sh/builder'));
  // Each port is listened on in both families.
  for (const inside of [inHost, inNeighbours])
    await waitFor('the listeners', () => run(inside('ss', '-ltnH')).trim().split('\n').length >= 2);
});
afterAll(() => {
  for (const listener of listeners) listener.kill('SIGKILL');
  for (const name of [host, neighbours]) run(['ip', 'netns', 'del', name]);
  rmSync(scratch, { recursive: true });
});

/** Whether a compromised builder reaches each of these, by address and port. */
function reached(targets: string[], port = 80): boolean[] {
  const script = targets.map(target => `echo | nc -w 1 ${target} ${port}; echo $?`).join('\n');
  const uid = String(userIdOf('builder', installation));
  return run(
    inHost(helperBinary, 'confine', String(process.pid), uid, '30', '-n', '--', join(scratch, 'sh'), '-c', script),
  )
    .trim()
    .split('\n')
    .map(status => status === '0');
}
const all = [...open, ...closed, ...own];

test('a builder that has the network reaches public addresses, and others where the operator allows them', () => {
  // Without the rules all of them answer: so the rules cause the refusals below.
  expect(reached(all)).toEqual(all.map(() => true));
  run(
    inHost('nft', '-f', '-'),
    hostTable({
      installation,
      resolvers: [],
      proxyNeeds: { nameServers: [], edgePort: undefined },
      proxies: 2,
      flowsMax: 1,
      ipv6: false,
      features: { countsFlows: false, forgetsClosed: false },
      linksNow: [],
      guards: { ways_out: [], ways_out_v6: [] },
      policies: [],
    }),
  );
  expect(reached(open)).toEqual(open.map(() => true));
  expect(reached([...closed, ...own]).filter(Boolean)).toEqual([]);
  const allowed = ['10.0.0.2', '127.0.0.1', 'fd00::2'];
  for (let times = 0; times < 2; times++) run(inHost('nft', '-f', '-'), builderHostsAdded(installation, allowed, 80));
  expect(reached(allowed)).toEqual(allowed.map(() => true));
  expect(reached(allowed, 81).filter(Boolean)).toEqual([]);
  expect(reached(['192.168.7.2', '::1'])).toEqual([false, false]);
});
