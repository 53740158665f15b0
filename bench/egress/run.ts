import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import type { EgressPolicy } from '../../src/protocol/network/network.ts';
import { addresses } from '../../test/egress/support/addresses.ts';
import { startLab, type Lab } from '../../test/egress/support/lab.ts';
import { summarize } from '../measure/statistics.ts';
import { blocks } from './blocks.ts';

// Measures traffic out of sandboxes: its cost compared with a direct connection, and how long changes of rules take.
// Everything runs in its own network namespaces; both ends and what is between them share the machine's cores.

const output = join(import.meta.dir, '../../docs/performance');
const program = Buffer.from(readFileSync(join(import.meta.dir, 'client.py'))).toString('base64');
const say = (text: string) => process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);
const ms = (value: number) => (value < 10 ? value.toFixed(2) : value.toFixed(0));
const row = (cells: (string | number)[]) => `| ${cells.join(' | ')} |`;

const headerRules = { 'allowed.test': { 'X-Added': 'yes' } };
const ways: { name: string; policy: EgressPolicy; address?: boolean }[] = [
  { name: 'direct (open policy)', policy: { internetAccess: true } },
  {
    name: '1,000 CIDR blocks, one of them allows it',
    policy: { internetAccess: false, allowOut: [...blocks(1, 999), addresses.allowed] },
  },
  { name: 'allowed by name', policy: { internetAccess: false, allowOut: ['allowed.test'] } },
  { name: 'opened for header rules', policy: { internetAccess: false, allowOut: ['allowed.test'], headerRules } },
  {
    name: 'through a SOCKS5 server',
    policy: { internetAccess: true, egressProxy: { address: `${addresses.socks}:1080` } },
  },
];

const lab = await startLab();
try {
  const lines = [
    `Measured ${new Date().toISOString().slice(0, 10)} on ${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}; sandbox, proxy and servers share them.`,
    '',
  ];
  lines.push(...(await trafficTable(lab)), '', ...(await updateTable(lab)), '', ...rulesTable(lab));
  mkdirSync(output, { recursive: true });
  writeFileSync(join(output, 'egress.md'), `# Traffic out of sandboxes\n\n${lines.join('\n')}\n`);
  process.stdout.write(`${lines.join('\n')}\n`);
} finally {
  await lab.dispose();
}

async function trafficTable(lab: Lab): Promise<string[]> {
  const rows = [
    row([
      'Way',
      'HTTP, new connection p50 / p99 ms',
      'HTTPS, new connection p50 / p99 ms',
      'HTTP, same connection p50 ms',
      'HTTP MB/s',
      'HTTPS MB/s',
    ]),
    row(['---', '---', '---', '---', '---', '---']),
  ];
  for (const { name, policy } of ways) {
    say(name);
    const sandbox = await lab.create(policy);
    await lab.run(
      sandbox,
      `echo ${program} | base64 -d > /tmp/client.py; grep -q allowed.test /etc/hosts || echo '${addresses.allowed} allowed.test' >> /etc/hosts`,
    );
    const numbers = async (command: string) =>
      (await lab.run(sandbox, `python3 /tmp/client.py ${command}`)).stdout.split('\n').filter(Boolean).map(Number);
    const summary = async (command: string) => summarize((await numbers(command)).slice(5));
    const [http, https, same] = [
      await summary('connections 305 http://allowed.test/'),
      await summary('connections 305 https://allowed.test/'),
      await summary('requests 505 http://allowed.test/'),
    ];
    const best = async (url: string) =>
      Math.max(
        ...(await numbers(`download ${url}`)),
        ...(await numbers(`download ${url}`)),
        ...(await numbers(`download ${url}`)),
      );
    rows.push(
      row([
        name,
        `${ms(http.median)} / ${ms(http.p99)}`,
        `${ms(https.median)} / ${ms(https.p99)}`,
        ms(same.median),
        (await best('http://allowed.test/big')).toFixed(0),
        (await best('https://allowed.test/big')).toFixed(0),
      ]),
    );
    await lab.kill(sandbox);
  }
  return rows;
}

async function updateTable(lab: Lab): Promise<string[]> {
  const sandbox = await lab.create({ internetAccess: true });
  const closed = { internetAccess: false };
  const changes: [string, (index: number) => EgressPolicy][] = [
    ['between open and closed', index => (index % 2 === 0 ? closed : { internetAccess: true })],
    ['to 10 new CIDR blocks', index => ({ ...closed, allowOut: blocks(index, 10) })],
    ['to 1,000 new CIDR blocks', index => ({ ...closed, allowOut: blocks(index, 1000) })],
    ['to other domains', index => ({ ...closed, allowOut: [`host${index}.test`] })],
    [
      'to other header rules',
      index => ({
        ...closed,
        allowOut: ['allowed.test'],
        headerRules: { 'allowed.test': { 'X-Added': String(index) } },
      }),
    ],
  ];
  const rows = [row(['Update of a policy', 'p50 ms', 'p99 ms', 'goal']), row(['---', '---', '---', '---'])];
  for (const [name, policyOf] of changes) {
    say(`update ${name}`);
    const times: number[] = [];
    for (let index = 0; index < 50; index++) times.push(await lab.update(sandbox, policyOf(index)));
    const { median, p99 } = summarize(times);
    rows.push(row([name, ms(median), ms(p99), '≤ 50 ms']));
  }
  await lab.kill(sandbox);
  return rows;
}

/** Only the rules, without sandboxes: the cost of 500 sandboxes with their own policies. */
function rulesTable(lab: Lab): string[] {
  const rows = [
    row([
      'Rules in place',
      'adding one p50 / p99 ms',
      'changing one beside all p50 / p99 ms',
      'removing one p50 ms',
      'memory of the kernel, MiB',
    ]),
    row(['---', '---', '---', '---', '---']),
  ];
  for (const [count, each] of [
    [500, 20],
    [500, 1000],
  ] as const) {
    say(`${count} sandboxes with ${each} blocks each`);
    const { added, updated, removed, memoryMiB } = JSON.parse(
      lab.inHost(process.execPath, join(import.meta.dir, 'rules.ts'), String(count), String(each)),
    ) as Record<'added' | 'updated' | 'removed', number[]> & { memoryMiB: number };
    const [add, update, remove] = [summarize(added), summarize(updated), summarize(removed)];
    rows.push(
      row([
        `${count} sandboxes, ${each} blocks of their own each`,
        `${ms(add.median)} / ${ms(add.p99)}`,
        `${ms(update.median)} / ${ms(update.p99)}`,
        ms(remove.median),
        memoryMiB.toFixed(0),
      ]),
    );
  }
  return rows;
}
