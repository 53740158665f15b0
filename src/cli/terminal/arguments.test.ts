import { expect, test } from 'bun:test';
import { commandLineDetail, oneOf, parseArguments } from './arguments.ts';

const options = {
  name: { type: 'string' },
  all: { type: 'boolean' },
  env: { type: 'string', multiple: true },
} as const;
const wrong = (message: string) => expect.objectContaining({ code: 'invalid', detail: commandLineDetail, message });
const parse = (args: string[], operands: string[]) => () => parseArguments(args, options, operands);

test('an operand that an unset variable leaves empty is refused by name, before any request', () => {
  expect(parse([''], ['SANDBOX_ID'])).toThrow(wrong('SANDBOX_ID must not be empty'));
  expect(parse(['a', ''], ['TEMPLATE', '<TAG...>'])).toThrow(wrong('TAG must not be empty'));
  expect(parse(['a', 'b', ''], ['[SANDBOX_ID...]'])).toThrow(wrong('SANDBOX_ID must not be empty'));
  expect(parse([''], ['[FOLDER]'])).toThrow(wrong('FOLDER must not be empty'));
  expect(parse(['--name', ''], [])).toThrow(wrong('--name must not be empty'));
});

test('the words of a command inside may be empty', () => {
  expect(parse(['i1', 'printf', ''], ['SANDBOX_ID', '<COMMAND...>'])().positionals).toEqual(['i1', 'printf', '']);
});

test('a word out of some is answered, and any other refused with all of them', () => {
  expect(oneOf('--mode', 'b', ['a', 'b'])).toBe('b');
  expect(() => oneOf('--mode', 'c', ['a', 'b'])).toThrow(wrong('--mode must be one of a, b, and "c" is not'));
});
