import { parseArguments } from './terminal/arguments.ts';
import type { Command } from './terminal/command.ts';

/** `atoll man`: the manual page of all commands, from their own descriptions. */
export function manualCommand(commands: () => Command[], version: string): Command {
  return {
    name: 'man',
    usage: '',
    summary: 'Prints the manual page, e.g. for `atoll man | man -l -`',
    async run(args, terminal) {
      parseArguments(args, {});
      terminal.out(manualPage(commands(), version));
      return 0;
    },
  };
}

/** A page for man(1), in the macros of man(7). */
export function manualPage(commands: Command[], version: string): string {
  const listed = commands.filter(({ summary }) => summary !== '');
  return [
    `.TH ATOLL 1 "" "atoll ${version}" "User Commands"`,
    '.SH NAME',
    'atoll \\- isolated sandboxes for code that nobody has reviewed',
    '.SH SYNOPSIS',
    '.B atoll',
    '.I COMMAND',
    '[\\fIOPTION\\fR]... [\\fIOPERAND\\fR]...',
    '.SH DESCRIPTION',
    'Results go to standard output, everything else to standard error. With',
    '.B \\-\\-json',
    'a command prints the API\\(aqs own answer. Commands for sandboxes, templates, volumes, secrets and webhooks ' +
      'are for the installation of the last',
    '.BR "atoll login" ,',
    'or else for that of this machine.',
    '.SH COMMANDS',
    ...listed.flatMap(({ name, usage, summary }) => [
      '.TP',
      `\\fBatoll ${escaped(name)}\\fR${usage === '' ? '' : ` ${escaped(usage)}`}`,
      sentence(summary),
    ]),
    '.SH EXIT STATUS',
    '0: done. 1: failed, with one line that says why. 2: a wrong command line.',
    '.B atoll sandbox exec',
    'and',
    '.B atoll ssh',
    'end with the exit code of what they ran.',
    '.SH FILES',
    '.TP',
    '.I ~/.config/atoll/login.json',
    'The login, for this user alone.',
    '',
  ].join('\n');
}

const sentence = (text: string) => `${escaped(text)}.`;

/** Text without macros and escapes, whatever it begins with. */
function escaped(text: string): string {
  return text.replaceAll('\\', '\\(rs').replaceAll('-', '\\-').replaceAll("'", '\\(aq').replace(/^\./, '\\&.');
}
