import { expect, test } from 'bun:test';
import { AtollError } from '../base/error.ts';
import { keyCommands } from './account/keys.ts';
import { teamCommands } from './account/teams.ts';
import { userCommands } from './account/users.ts';
import { clusterCommands } from './operator/cluster.ts';
import { nodeCommands } from './operator/nodes.ts';
import { orphanCommands } from './operator/orphans.ts';
import { runCommandLine } from './run.ts';
import { sandboxCommands } from './sandbox/list.ts';
import { stateCommands } from './sandbox/states.ts';
import { secretCommands } from './secrets.ts';
import { templateChangeCommands } from './template/change.ts';
import type { Command, Input } from './terminal/command.ts';
import { volumeCommands } from './volumes.ts';
import { webhookCommands } from './webhooks.ts';

// A user who reads “Deleted.” believes it: a command may print it only after the platform has answered.

/** A value for every name that a command may look for. */
const anything = { volumeID: 'x', name: 'x', secretID: 'x', sandboxID: 'x', templateID: 'x', nodeID: 'x', id: 'x' };
const refused: string[] = [];
const request = (method: string, path: string) => {
  if (method === 'GET') return Promise.resolve([anything]);
  refused.push(`${method} ${path}`);
  return Promise.reject(new AtollError('forbidden', 'It is refused.'));
};
const list = () => Promise.resolve([anything]);
const withAccounts = () => {
  refused.push('accounts');
  return Promise.reject(new AtollError('forbidden', 'It is refused.'));
};
const commands: Command[] = [
  ...userCommands(withAccounts),
  ...keyCommands(withAccounts),
  ...teamCommands(withAccounts),
  ...sandboxCommands(request, list),
  ...stateCommands(request),
  ...orphanCommands(request),
  ...clusterCommands(request),
  ...volumeCommands(request),
  ...secretCommands(request, list),
  ...webhookCommands(request),
  ...nodeCommands(request),
  ...templateChangeCommands(request),
].filter(({ name }) => name !== 'template init'); // asks nobody, and writes a file

/** The piped input of each command. */
const input: Input = {
  isTerminal: false,
  async *chunks() {
    yield Buffer.from('x');
  },
  setRaw: () => {},
  size: () => ({ columns: 80, rows: 24 }),
  onResize: () => () => {},
};

/** A value for an operand. */
const operand = (name: string): string => (/SECONDS|PORT|COUNT/.test(name) ? '60' : 'x');
const operandsOf = ({ usage }: Command): string[] =>
  [...usage.replaceAll(/\[[^\]]*\]/g, '').matchAll(/[A-Z][A-Z_]*/g)].map(([name]) => operand(name));

/** Some commands that must be among them. */
const changing = [
  ...['sandbox pause', 'volume delete', 'secret delete', 'secret update', 'webhook delete', 'node cordon'],
  ...['template tag', 'user leave', 'token revoke', 'key revoke', 'team rename'],
];

/** What a command prints when the platform refuses; null for a command that changes nothing. */
async function saidBy(command: Command, ...options: string[]) {
  refused.length = 0;
  let [out, err] = ['', ''];
  const argv = [...command.name.split(' '), ...options, ...operandsOf(command)];
  const terminal = {
    out: (text: string) => void (out += text),
    err: (text: string) => void (err += text),
    isInteractive: false,
    input,
  };
  const code = await runCommandLine(argv, commands, terminal).catch((error: unknown) => {
    if (refused.length > 0) throw error; // otherwise it shows a list, of items that lack some of what it shows
  });
  return refused.length === 0 ? null : { code, out, err };
}

test('no command says that something was done which is refused', async () => {
  const refusedTo: string[] = [];
  for (const command of commands) {
    const said = await saidBy(command);
    if (said === null) continue;
    refusedTo.push(command.name);
    const refusal = { code: 1, out: '', err: `atoll ${command.name}: It is refused.\n` };
    expect({ command: command.name, ...said }).toEqual({ command: command.name, ...refusal });
    if (command.usage.includes('--json'))
      expect({ command: command.name, ...(await saidBy(command, '--json')) }).toEqual({
        command: command.name,
        ...refusal,
      });
  }
  expect(refusedTo).toEqual(expect.arrayContaining(changing));
});
