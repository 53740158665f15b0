import { Command as Parser, CommanderError, Option } from 'commander';
import { AtollError, messageOf } from '../../base/error.ts';

/** Marks errors in the command line itself, after which the usage is printed. */
export const commandLineDetail = 'command_line';

/** An option by its long name; `multiple`: may be given several times. A name that begins with `no-` is a switch. */
type OptionType = { type: 'boolean' | 'string'; multiple?: boolean; short?: string };
type Options = Record<string, OptionType>;
type ValueOf<T extends OptionType> = T extends { type: 'boolean' }
  ? boolean
  : T extends { multiple: true }
    ? string[]
    : string;

/** The switch of every command whose answer a program may read. */
export const jsonOption = { json: { type: 'boolean' } } as const;

/** The content of a command line: the given options, and the operands in order. */
type ParsedArguments<O extends Options> = { values: { [Name in keyof O]?: ValueOf<O[Name]> }; positionals: string[] };

/**
 * The options and operands of a command line. Operands are named as in a usage: `SANDBOX_ID`, `[TEMPLATE]` if it may be
 * left out, `<TAG...>` for all that follow; everything after the operand before `COMMAND...` belongs to that command,
 * including options. Fails with `invalid` for unknown options, options without their value, missing or surplus
 * operands, and empty ones of either kind.
 */
export function parseArguments<const O extends Options>(
  args: string[],
  options: O,
  operands: string[] = [],
): ParsedArguments<O> {
  const parser = new Parser()
    .exitOverride()
    .helpOption(false)
    .configureOutput({ writeErr: () => {} })
    .passThroughOptions(operands.some(name => name.includes('COMMAND...')));
  for (const operand of operands) parser.argument(/^[[<]/.test(operand) ? operand : `<${operand}>`);
  for (const [name, option] of Object.entries(options)) parser.addOption(optionOf(name, option));
  try {
    parser.parse(args, { from: 'user' });
  } catch (error) {
    throw new AtollError('invalid', sentenceOf(error), { cause: error, detail: commandLineDetail });
  }
  requireText(operands, parser.args);
  const given = parser.opts<Record<string, unknown>>();
  const values = Object.keys(options).flatMap(name =>
    given[keyOf(name)] === undefined ? [] : [[name, given[keyOf(name)]]],
  );
  for (const [name, value] of values) if (value === '') throw misuse(`--${name} must not be empty`);
  return { values: Object.fromEntries(values) as ParsedArguments<O>['values'], positionals: parser.args };
}

/** An error for a wrong command line, in a sentence; the usage is printed after it. */
export const misuse = (sentence: string): AtollError =>
  new AtollError('invalid', sentence, { detail: commandLineDetail });

/** A choice of some words. Fails with `invalid`. */
export function oneOf<T extends string>(name: string, text: string, words: readonly T[]): T {
  const found = words.find(word => word === text);
  if (found === undefined)
    throw misuse(`${name} must be one of ${words.join(', ')}, and ${JSON.stringify(text)} is not`);
  return found;
}

/** An empty operand, as an unset shell variable leaves it, counts as missing. A command inside may have empty words. */
function requireText(operands: string[], given: string[]): void {
  for (const [index, text] of given.entries()) {
    const name = operands[Math.min(index, operands.length - 1)]?.replace(/[[\]<>.]/g, '') ?? '';
    if (text === '' && name !== 'COMMAND') throw misuse(`${name} must not be empty`);
  }
}

function optionOf(name: string, { type, multiple, short }: OptionType): Option {
  const flags = `${short === undefined ? '' : `-${short}, `}--${name}${type === 'string' ? ' <value>' : ''}`;
  const option = new Option(flags);
  // `--no-x` would be parsed as the opposite of `--x`.
  option.negate = false;
  option.attributeName = () => keyOf(name);
  if (multiple) option.argParser((value: string, before: string[] | undefined) => [...(before ?? []), value]);
  return option;
}

const keyOf = (name: string) => `--${name}`;

function sentenceOf(error: unknown): string {
  const text = messageOf(error);
  return error instanceof CommanderError ? text.replace(/^error: /, '').replace(/\n/g, ' ') : text;
}
