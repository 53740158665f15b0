import { isNoSpace } from '../base/disk-room.ts';
import { AtollError, messageOf, systemCodeOf } from '../base/error.ts';
import { platformVersion } from '../base/version.ts';
import { commandLineDetail } from './terminal/arguments.ts';
import { printable } from './terminal/printable.ts';
import type { Command, Terminal } from './terminal/command.ts';
import { tableText } from './terminal/table.ts';

/** Exit code for an invalid command line, by the convention of shells. */
const usageExitCode = 2;

/** Exit code of an interrupted command, by the same convention: 128 plus the number of SIGINT. */
const interruptedExitCode = 130;

/**
 * Finds the command that `argv` names, runs it and answers the exit code. A failure of the world ends in one message;
 * anything else is a defect and is printed whole.
 */
export async function runCommandLine(argv: string[], commands: Command[], terminal: Terminal): Promise<number> {
  const [first = 'help'] = argv;
  const [only, ...more] = argv.filter(word => word !== '--help' && word !== '-h');
  if (first === 'help' && more.length > 0) return runCommandLine([...more, '--help'], commands, terminal);
  if (only === undefined || only === 'help') {
    terminal.out(about + helpText(commands, terminal.columns));
    return 0;
  }
  if (first === 'version' || first === '--version') {
    terminal.out(`atoll ${platformVersion}\n`);
    return 0;
  }
  if (isHabit(argv, commands)) return runCommandLine([first, 'list', ...argv.slice(2)], commands, terminal);
  // Both exist: `atoll node` runs one, and `atoll node list` lists them.
  const command = commands
    .filter(({ name }) => name.split(' ').every((word, index) => argv[index] === word))
    .toSorted((a, b) => b.name.length - a.name.length)[0];
  if (!command) return refuseUnknown(argv, commands, terminal);
  const args = argv.slice(command.name.split(' ').length);
  // In a command that runs another one, options after its operands belong to the other one.
  const own = command.usage.includes('COMMAND...') ? args.slice(0, 1) : args;
  if (own.includes('--help') || own.includes('-h')) {
    terminal.out(`Usage: atoll ${command.name} ${command.usage}\n\n${command.summary}\n`);
    return 0;
  }
  try {
    return await command.run(args, terminal);
  } catch (error) {
    const sentence = sentenceOf(error);
    if (sentence === undefined) throw error;
    terminal.err(`atoll ${command.name}: ${shown(sentence)}\n`);
    if (!(error instanceof AtollError)) return 1;
    if (error.code === 'canceled') return interruptedExitCode;
    if (error.detail !== commandLineDetail) return 1;
    terminal.err(`Usage: atoll ${command.name} ${command.usage}\n`);
    return usageExitCode;
  }
}

/** User input may be anything, and messages repeat it. */
const sentenceCharactersMax = 2000;
const shown = (text: string): string =>
  printable(text.length > sentenceCharactersMax ? `${text.slice(0, sentenceCharactersMax)}…` : text);

/** `ls`, a habit from other command lines, where it can only mean a list. */
const isHabit = ([group, word]: string[], commands: Command[]): boolean =>
  word === 'ls' && commands.some(({ name }) => name === `${group} list`);

/** Lists a group of commands if that was asked for; otherwise says which command may have been meant. */
function refuseUnknown(argv: string[], commands: Command[], terminal: Terminal): number {
  const words = argv.filter(word => !word.startsWith('-'));
  const group = commands.filter(({ name, summary }) => summary !== '' && name.startsWith(`${words.join(' ')} `));
  if (group.length > 0) {
    const asked = words.length < argv.length;
    (asked ? terminal.out : terminal.err)(helpText(group, terminal.columns));
    return asked ? 0 : usageExitCode;
  }
  const like = likest(words.slice(0, 2).join(' '), commands);
  const meant = like === undefined ? '' : ` Did you mean \`atoll ${like}\`?`;
  const typed = argv.filter(word => word !== '--help' && word !== '-h').join(' ');
  terminal.err(`atoll: there is no command '${shown(typed)}'.${meant} \`atoll help\` lists them.\n`);
  return usageExitCode;
}

/** How many characters may differ between what was typed and what was meant. */
const likeMax = 3;

/** The command nearest to what was typed; undefined if none is near. */
function likest(typed: string, commands: Command[]): string | undefined {
  const near = commands
    .flatMap(({ name, summary }) => (summary === '' ? [] : [{ name, distance: distanceOf(typed, name) }]))
    .toSorted((a, b) => a.distance - b.distance)[0];
  return near && near.distance <= Math.min(likeMax, Math.floor(near.name.length / 2)) ? near.name : undefined;
}

/** How many characters must be inserted, removed or replaced to turn one text into the other (Levenshtein). */
function distanceOf(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [line, left] of from.split('').entries()) {
    const next = [line + 1];
    for (const [index, right] of to.split('').entries()) {
      const [above = 0, before = 0, across = 0] = [row[index + 1], next[index], row[index]];
      next.push(Math.min(above + 1, before + 1, across + (left === right ? 0 : 1)));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}

/** A failure of the world, in words for the user; undefined for a defect. */
function sentenceOf(error: unknown): string | undefined {
  if (error instanceof AtollError) return error.message;
  const code = systemCodeOf(error);
  const path = error instanceof Error && 'path' in error ? ` ${String(error.path)}` : '';
  if (code === 'EACCES' || code === 'EPERM')
    return `This user may not use${path || ' what it needs'}: run it as root, e.g. with sudo.`;
  if (isNoSpace(error))
    return (
      `The disk is full${path && `: nothing can be written to${path}`}. Make room and run it again; \`atoll ` +
      `down\` works without.`
    );
  if (code === 'EROFS') return `The disk is read-only: nothing can be written to${path || ' it'}.`;
  if (code === 'ENAMETOOLONG') return 'The name of a file is too long: a name has at most 255 bytes, a path 4095.';
  return /^E[A-Z]+$/.test(code) ? `${messageOf(error)}.` : undefined;
}

const about = 'Atoll runs isolated sandboxes for code that nobody has reviewed.\n\n';

/** If lines have a limited width, only a command's own help shows its arguments. */
function helpText(commands: Command[], columns?: number): string {
  const rows = commands
    .filter(({ summary }) => summary !== '')
    .map(({ name, usage, summary }) => [
      `  atoll ${name}${columns === undefined && usage !== '' ? ` ${usage}` : ''}`,
      summary,
    ]);
  return tableText(rows, columns);
}
