import type { Sandbox } from 'e2b';
import { parseArguments } from '../terminal/arguments.ts';
import type { Command, Input } from '../terminal/command.ts';
import type { Connect } from '../connection/connection.ts';
import { pairsOf } from '../terminal/pairs.ts';
import { withSandbox } from './open.ts';
import { runToLeave } from './run-to-leave.ts';

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
      const stderr = new TextDecoder();
      return withSandbox(connect, sandboxId, async (sandbox, way) =>
        runToLeave(
          way,
          terminal,
          { line, envs, user: values.user, cwd: values.cwd },
          {
            onStart: pid => void sendInput(sandbox, pid, terminal.input),
            onStdout: bytes => terminal.out(bytes),
            onStderr: bytes => terminal.err(stderr.decode(bytes, { stream: true })),
          },
        ),
      );
    },
  };
}

/** A shell line from a command: each word is quoted; a single word is the line itself. */
export function lineOf(words: string[]): string {
  const [only] = words;
  if (words.length === 1 && only !== undefined) return only;
  return words.map(wordOf).join(' ');
}

/** A word quoted for a shell line. */
export function wordOf(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

async function sendInput(sandbox: Sandbox, pid: number, input: Input | undefined): Promise<void> {
  try {
    // At a keyboard, people would have to end the input by hand: `sandbox shell` is for that.
    if (input && !input.isTerminal)
      for await (const chunk of input.chunks()) await sandbox.commands.sendStdin(pid, chunk);
    await sandbox.commands.closeStdin(pid);
  } catch {
    // The command has ended without reading all of it.
  }
}
