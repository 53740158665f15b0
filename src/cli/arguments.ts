import { type ParseArgsConfig, parseArgs } from 'node:util';
import { AtollError, messageOf } from '../base/error.ts';

/** Marks errors about the command line itself, after which the usage is shown. */
export const commandLineDetail = 'command_line';

type Options = NonNullable<ParseArgsConfig['options']>;

/**
 * The options and operands of a command line. Fails with `invalid` for unknown options, options without their value,
 * and for fewer or more operands than `operands` names.
 */
export function parseArguments<O extends Options>(args: string[], options: O, operands: string[] = []) {
  const parsed = parsedOrThrow(args, options);
  if (parsed.positionals.length !== operands.length) {
    const wanted = operands.length === 0 ? 'no operands' : operands.join(' ');
    throw new AtollError('invalid', `Expected ${wanted}, got ${parsed.positionals.join(' ') || 'none'}.`, { detail: commandLineDetail });
  }
  return parsed;
}

function parsedOrThrow<O extends Options>(args: string[], options: O) {
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true });
  } catch (error) {
    throw new AtollError('invalid', messageOf(error), { cause: error, detail: commandLineDetail });
  }
}
