import { expect, test } from 'bun:test';
import { AtollError } from '../base/error.ts';
import { clusterCommands } from './operator/cluster.ts';
import { nodeCommands } from './operator/nodes.ts';
import { orphanCommands } from './operator/orphans.ts';
import { runCommandLine } from './run.ts';
import { sandboxCommands } from './sandbox/list.ts';
import { stateCommands } from './sandbox/states.ts';
import { secretCommands } from './secrets.ts';
import { templateChangeCommands } from './template/change.ts';
import type { Command } from './terminal/command.ts';
import { volumeCommands } from './volumes.ts';
import { webhookCommands } from './webhooks.ts';

// Whoever reads “Deleted.” believes it: a command says so when the platform has answered, and not before.

/** Something by every name that a command may look for. */
const anything = { volumeID: 'x', name: 'x', secretID: 'x', sandboxID: 'x', templateID: 'x', nodeID: 'x', id: 'x' };
const refused: string[] = [];
const request = (method: string, path: string) => {
  if (method === 'GET') return Promise.resolve([anything]);
  refused.push(`${method} ${path}`);
  return Promise.reject(new AtollError('forbidden', 'It is refused.'));
};
const list = () => Promise.resolve([anything]);
const commands: Command[] = [
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

/** What stands in the place of an operand. */
const operand = (name: string): string => (/SECONDS|PORT|COUNT/.test(name) ? '60' : 'x');
const operandsOf = ({ usage }: Command): string[] =>
  [...usage.replaceAll(/\[[^\]]*\]/g, '').matchAll(/[A-Z][A-Z_]*/g)].map(([name]) => operand(name));

/** Some that must have been among them. */
const changing = ['sandbox pause', 'volume delete', 'secret delete', 'webhook delete', 'node cordon', 'template tag'];

test('no command says that something was done which is refused', async () => {
  const refusedTo: string[] = [];
  for (const command of commands) {
    refused.length = 0;
    let out = '';
    const argv = [...command.name.split(' '), ...operandsOf(command)];
    const terminal = { out: (text: string) => void (out += text), err: () => {}, isInteractive: false };
    const code = await runCommandLine(argv, commands, terminal).catch((error: unknown) => {
      if (refused.length > 0) throw error; // else it shows a list, of things that have not all that it shows
    });
    if (refused.length === 0) continue;
    refusedTo.push(command.name);
    expect({ command: command.name, code, out }).toEqual({ command: command.name, code: 1, out: '' });
  }
  expect(refusedTo).toEqual(expect.arrayContaining(changing));
});
