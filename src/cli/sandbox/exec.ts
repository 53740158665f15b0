import type { CommandHandle, Sandbox } from 'e2b';
import { AtollError } from '../../base/error.ts';
import { parseArguments } from '../terminal/arguments.ts';
import type { Command, Input } from '../terminal/command.ts';
import type { Connect } from '../connection/connection.ts';
import { pairsOf } from '../terminal/pairs.ts';
import { withSandbox } from './open.ts';

/** `atoll sandbox exec`: runs a command inside, with this command's input, output and exit code. */
export function execCommand(connect: Connect): Command {
  return {
    name: 'sandbox exec',
    usage: '[--user USER] [--cwd DIR] [--env NAME=VALUE]... SANDBOX_ID COMMAND...',
    summary: 'Runs a command in a sandbox; one word is a line for its shell. Ends with its exit code',
    async run(args, terminal) {
      const { values, positionals } = parseArguments(
        args,
        {
          user: { type: 'string', short: 'u' },
          cwd: { type: 'string', short: 'c' },
          env: { type: 'string', multiple: true, short: 'e' },
        },
        ['SANDBOX_ID', '<COMMAND...>'],
      );
      const [sandboxId = '', ...command] = positionals;
      const line = lineOf(command[0] === '--' ? command.slice(1) : command);
      const envs = pairsOf('--env', values.env);
      return withSandbox(connect, sandboxId, async sandbox => {
        const handle = await sandbox.commands.run(line, {
          background: true,
          stdin: true,
          timeoutMs: 0,
          envs,
          ...(values.user !== undefined && { user: values.user }),
          ...(values.cwd !== undefined && { cwd: values.cwd }),
          onStdout: text => terminal.out(text),
          onStderr: text => terminal.err(text),
        });
        void sendInput(sandbox, handle, terminal.input);
        return exitCodeOf(handle);
      });
    },
  };
}

/** A command as a line of shell: each word stands for itself. */
export function lineOf(words: string[]): string {
  const [only] = words;
  if (words.length === 1 && only !== undefined) return only;
  return words.map(word => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ');
}

async function sendInput(sandbox: Sandbox, { pid }: CommandHandle, input: Input | undefined): Promise<void> {
  try {
    // A person who types would have to end the input by hand: `sandbox shell` is for that.
    if (input && !input.isTerminal)
      for await (const chunk of input.chunks()) await sandbox.commands.sendStdin(pid, chunk);
    await sandbox.commands.closeStdin(pid);
  } catch {
    // The command has ended without reading all of it.
  }
}

/**
 * The exit code of a command; 128 and the signal's number as shells have it. Fails with `unavailable` where the
 * connection broke off.
 */
export async function exitCodeOf(handle: CommandHandle): Promise<number> {
  const { CommandExitError } = await import('e2b');
  try {
    return (await handle.wait()).exitCode;
  } catch (error) {
    if (error instanceof CommandExitError) return error.exitCode;
    throw new AtollError('unavailable', 'The connection to the sandbox broke off before the command had ended.', {
      cause: error,
    });
  }
}
