import { AtollError } from '../base/error.ts';
import { commandLineDetail } from './arguments.ts';
import type { Command, Terminal } from './command.ts';

/** Exit code for a command line that is not one, after the habit of shells. */
const usageExitCode = 2;

/**
 * Finds the command that `argv` names, runs it and answers the exit code. A failure of the world ends in one message;
 * anything else is a defect and is shown whole.
 */
export async function runCommandLine(argv: string[], commands: Command[], terminal: Terminal): Promise<number> {
  const [first = 'help'] = argv;
  if (first === 'help' || first === '--help' || first === '-h') {
    terminal.out(helpText(commands));
    return 0;
  }
  const command = commands.find(({ name }) => name.split(' ').every((word, index) => argv[index] === word));
  if (!command) {
    terminal.err(`atoll: there is no command '${argv.join(' ')}'. \`atoll help\` lists them.\n`);
    return usageExitCode;
  }
  const args = argv.slice(command.name.split(' ').length);
  if (args.includes('--help') || args.includes('-h')) {
    terminal.out(`Usage: atoll ${command.name} ${command.usage}\n\n${command.summary}\n`);
    return 0;
  }
  try {
    return await command.run(args, terminal);
  } catch (error) {
    if (!(error instanceof AtollError)) throw error;
    terminal.err(`atoll ${command.name}: ${error.message}\n`);
    if (error.detail !== commandLineDetail) return 1;
    terminal.err(`Usage: atoll ${command.name} ${command.usage}\n`);
    return usageExitCode;
  }
}

function helpText(commands: Command[]): string {
  const rows = commands.map(({ name, usage, summary }) => [`  atoll ${name} ${usage}`.trimEnd(), summary] as const);
  const width = Math.max(...rows.map(([left]) => left.length));
  return `Atoll runs isolated sandboxes for code that nobody has reviewed.\n\n${rows.map(([left, right]) => `${left.padEnd(width)}  ${right}\n`).join('')}`;
}
