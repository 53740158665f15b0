import type { CommandHandle, Sandbox } from 'e2b';
import { AtollError } from '../../base/error.ts';
import { signalOf } from '../../base/process/signal-text.ts';
import { parseArguments } from '../terminal/arguments.ts';
import type { Command, Input } from '../terminal/command.ts';
import type { Connect } from '../connection/connection.ts';
import { withSandbox } from './open.ts';

/** `atoll sandbox shell`: a terminal inside. */
export function shellCommand(connect: Connect): Command {
  return {
    name: 'sandbox shell',
    usage: '[--user USER] [--cwd DIR] SANDBOX_ID',
    summary: 'Opens a terminal in a sandbox',
    async run(args, terminal) {
      const { values, positionals } = parseArguments(
        args,
        { user: { type: 'string', short: 'u' }, cwd: { type: 'string', short: 'c' } },
        ['SANDBOX_ID'],
      );
      const { input } = terminal;
      if (!input?.isTerminal)
        throw new AtollError('invalid', 'The input is no terminal; `atoll sandbox exec` runs single commands.');
      const size = () => ({ cols: input.size().columns, rows: input.size().rows });
      return withSandbox(connect, positionals[0] ?? '', async sandbox => {
        const handle = await sandbox.pty.create({
          ...size(),
          timeoutMs: 0,
          onData: bytes => terminal.out(bytes),
          ...(values.user !== undefined && { user: values.user }),
          ...(values.cwd !== undefined && { cwd: values.cwd }),
        });
        const stopResizing = input.onResize(() => void sandbox.pty.resize(handle.pid, size()).catch(() => {}));
        input.setRaw(true);
        try {
          void sendKeys(sandbox, handle.pid, input);
          return await exitCodeOf(handle);
        } finally {
          input.setRaw(false);
          stopResizing();
        }
      });
    },
  };
}

async function sendKeys(sandbox: Sandbox, pid: number, input: Input): Promise<void> {
  try {
    for await (const chunk of input.chunks()) await sandbox.pty.sendInput(pid, chunk);
  } catch {
    // The shell has ended.
  }
}

/**
 * The exit code of a command, or 128 plus the signal's number as in shells. Fails with `unavailable` if the connection
 * broke off.
 */
async function exitCodeOf(handle: CommandHandle): Promise<number> {
  const { CommandExitError } = await import('e2b');
  try {
    return (await handle.wait()).exitCode;
  } catch (error) {
    if (error instanceof CommandExitError) {
      const signal = signalOf(error.error ?? '');
      return signal === undefined ? error.exitCode : 128 + signal;
    }
    throw new AtollError('unavailable', 'The connection to the sandbox broke off before the command had ended.', {
      cause: error,
    });
  }
}
