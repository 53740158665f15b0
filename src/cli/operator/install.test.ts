import { expect, test } from 'bun:test';
import { runCommandLine } from '../run.ts';
import { serviceCommands } from './install.ts';

/** Runs a command, and answers what was asked of the machine. */
async function run(...argv: string[]) {
  const asked: unknown[] = [];
  let [out, err] = ['', ''];
  const commands = serviceCommands({
    install: async (name, options) => (asked.push(['install', name, options]), `/units/${name}.service`),
    uninstall: async (name, options) => (asked.push(['uninstall', name, options]), '/data'),
  });
  const code = await runCommandLine(argv, commands, {
    out: text => void (out += String(text)),
    err: text => void (err += text),
    isInteractive: false,
  });
  return { code, out, err, asked };
}

const [control, token] = ['https://c.example', 'secret'];
const plain = { start: true, role: 'platform', invitation: undefined };

test.each<[line: string, name: string, options: object]>([
  ['install', 'atoll', plain],
  ['install --name other --no-start', 'other', { ...plain, start: false }],
  ['install --role platform', 'atoll', plain],
  ['install --role control', 'atoll', { ...plain, role: 'control' }],
  ['install --role node', 'atoll', { ...plain, role: 'node' }],
  [
    `install --role node --control ${control} --token ${token}`,
    'atoll',
    { ...plain, role: 'node', invitation: { control, token } },
  ],
])('atoll %s', async (line, name, options) => {
  const { code, err, asked } = await run(...line.split(' '));
  expect([code, err, asked]).toEqual([0, '', [['install', name, options]]]);
});

test('an invitation is whole and for a machine of a cluster, and a role is one that there is', async () => {
  for (const [line, says] of [
    [`--role node --control ${control}`, 'go together'],
    [`--role node --token ${token}`, 'go together'],
    [`--role control --control ${control} --token ${token}`, 'with --role node'],
    [`--control ${control} --token ${token}`, 'with --role node'],
    ['--role nodes', '--role is "nodes", and must be control or node'],
  ] as const) {
    const { code, err, asked } = await run('install', ...line.split(' '));
    expect({ line, code, asked }).toEqual({ line, code: 2, asked: [] });
    expect(err).toContain(says);
  }
});

test('an installed service says whether it runs, and how it is seen and removed', async () => {
  const { out } = await run('install', '--name', 'other');
  expect(out).toStartWith('/units/other.service is running. `systemctl status other`');
  expect((await run('install', '--no-start')).out).toStartWith('/units/atoll.service is enabled.');
  const json = await run('install', '--no-start', '--role', 'control', '--json');
  expect(JSON.parse(json.out)).toEqual({
    name: 'atoll',
    file: '/units/atoll.service',
    role: 'control',
    running: false,
  });
});

test('data stays unless requested otherwise, and the command says what happened to it', async () => {
  const kept = await run('uninstall');
  expect(kept.asked).toEqual([['uninstall', 'atoll', { data: false }]]);
  expect(kept.out).toStartWith('The service is removed. /data is kept:');
  const removed = await run('uninstall', '--name', 'other', '--data', '--yes');
  expect(removed.asked).toEqual([['uninstall', 'other', { data: true }]]);
  expect(removed.out).toBe('The service and /data are removed.\n');
  const json = await run('uninstall', '--json');
  expect(JSON.parse(json.out)).toEqual({ name: 'atoll', dataDir: '/data', removedData: false });
});
