import { expect, test } from 'bun:test';
import { completionCommands } from './completion.ts';
import type { Command } from './terminal/command.ts';

const usages: Record<string, string> = {
  login: 'URL [--key KEY]',
  node: '',
  'node list': '[--json]',
  'node drain': 'NODE_ID [--mode wait|pause|move] [--force]',
  'sandbox create': '[--volume VOLUME] [--json] [TEMPLATE]',
  'sandbox cp': 'SOURCE DESTINATION',
  'sandbox kill': '[--json] SANDBOX_ID...',
  'secret delete': 'SECRET',
  'template tag': 'TEMPLATE TAG',
  'webhook delete': 'WEBHOOK_ID',
};
const commands = Object.entries(usages).map(([name, usage]): Command => ({
  name,
  usage,
  summary: name,
  run: async () => 0,
}));
const platform: Record<string, unknown[]> = {
  '/v2/sandboxes': [{ sandboxID: 'i1' }, { sandboxID: 'i2' }],
  '/v2/templates': [{ aliases: ['base', 'tools'] }, {}],
  '/volumes': [{ name: 'shared' }],
  '/secrets': [{ name: 'api-key' }],
  '/events/webhooks': [{ id: 'w1' }],
};
const all: Command[] = [
  ...commands,
  ...completionCommands(
    () => all,
    async path => platform[path] ?? [],
  ),
];

/** What a completion command prints. */
async function printed(name: string, ...args: string[]): Promise<string> {
  let out = '';
  const terminal = { isInteractive: false, out: (text: string) => void (out += text), err: () => {} };
  await all.find(command => command.name === name)?.run(args, terminal as never);
  return out;
}

/** The completions of a line's last word. */
const completed = async (...words: string[]) => (await printed('__complete', '--', ...words)).split('\n').slice(0, -1);

test('the words of commands are offered, each once, and none that only the shell calls', async () => {
  const first = ['completion', 'help', 'login', 'node', 'sandbox', 'secret', 'template', 'webhook'];
  expect(await completed('')).toEqual(first);
  expect(await completed('s')).toEqual(['sandbox', 'secret']);
  expect(await completed('sandbox', '')).toEqual(['cp', 'create', 'kill']);
  expect(await completed('sandbox', 'c')).toEqual(['cp', 'create']);
  expect(await completed('help', 'node', '')).toEqual(['drain', 'list']);
  expect(await completed('help', '')).toEqual(first.filter(word => word !== 'help'));
  expect(await completed('nowhere', '')).toEqual([]);
});

test('options are those of the command, where one begins', async () => {
  expect(await completed('sandbox', 'create', '--')).toEqual(['--json', '--volume']);
  expect(await completed('node', 'drain', 'n1', '--f')).toEqual(['--force']);
  expect(await completed('webhook', 'delete', '--')).toEqual([]);
});

test('an option is followed by what it takes, and is no operand', async () => {
  expect(await completed('node', 'drain', 'n1', '--mode', '')).toEqual(['move', 'pause', 'wait']);
  expect(await completed('sandbox', 'create', '--volume', '')).toEqual(['shared']);
  expect(await completed('sandbox', 'create', '--volume', 'shared', '--json', 'b')).toEqual(['base']);
  expect(await completed('sandbox', 'create', '--volume', 'shared', 'base', '')).toEqual([]);
});

test('operands are completed with names of existing things, in order', async () => {
  expect(await completed('sandbox', 'create', '')).toEqual(['base', 'tools']);
  expect(await completed('secret', 'delete', '')).toEqual(['api-key']);
  expect(await completed('webhook', 'delete', 'w')).toEqual(['w1']);
  expect(await completed('template', 'tag', 'base', '')).toEqual([]);
  expect(await completed('completion', '')).toEqual(['bash', 'fish', 'zsh']);
  expect(await completed('login', '')).toEqual([]);
});

test('a file of a sandbox goes on behind the colon, and an operand that repeats is offered again', async () => {
  expect(await completed('sandbox', 'cp', '')).toEqual(['i1:', 'i2:']);
  expect(await completed('sandbox', 'cp', './file', 'i2')).toEqual(['i2:']);
  expect(await completed('sandbox', 'cp', 'a', 'i1:/a', '')).toEqual([]);
  expect(await completed('sandbox', 'kill', 'i1', '')).toEqual(['i1', 'i2']);
});

test('each shell gets a script that asks for the words so far, and what is no shell is refused', async () => {
  for (const shell of ['bash', 'zsh', 'fish'])
    expect(await printed('completion', shell)).toContain('atoll __complete --');
  await expect(printed('completion', 'cmd')).rejects.toThrow('There is completion for bash, zsh, fish.');
});
