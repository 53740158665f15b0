import { AtollError, messageOf, systemCodeOf } from '../base/error.ts';
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
    const sentence = sentenceOf(error);
    if (sentence === undefined) throw error;
    terminal.err(`atoll ${command.name}: ${sentence}\n`);
    if (!(error instanceof AtollError)) return 1;
    if (error.detail !== commandLineDetail) return 1;
    terminal.err(`Usage: atoll ${command.name} ${command.usage}\n`);
    return usageExitCode;
  }
}

/** What the world did, in words for who asked; undefined for a defect. */
function sentenceOf(error: unknown): string | undefined {
  if (error instanceof AtollError) return error.message;
  const code = systemCodeOf(error);
  const path = error instanceof Error && 'path' in error ? ` ${String(error.path)}` : '';
  if (code === 'EACCES' || code === 'EPERM') return `This user may not use${path || ' what it needs'}: run it as root, e.g. with sudo.`;
  if (code === 'ENOSPC' || code === 'EDQUOT') return `The disk is full${path && `: nothing can be written to${path}`}. Make room and run it again; \`atoll down\` works without.`;
  return /^E[A-Z]+$/.test(code) ? `${messageOf(error)}.` : undefined;
}

function helpText(commands: Command[]): string {
  const rows = commands.map(({ name, usage, summary }) => [`  atoll ${name} ${usage}`.trimEnd(), summary] as const);
  const width = Math.max(...rows.map(([left]) => left.length));
  return `Atoll runs isolated sandboxes for code that nobody has reviewed.\n\n${rows.map(([left, right]) => `${left.padEnd(width)}  ${right}\n`).join('')}`;
}
