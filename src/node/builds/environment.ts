import { AtollError } from '../../base/error.ts';

/** Characters of a build's environment, names and values: starting a program allows little more (execve(2)). */
export const environmentCharactersMax = 128 << 10;
const variablesMax = 1_000;

/** Looks up an entry in a table whose names a stranger chose: `constructor` is there only if somebody put it there. */
export function valueOf<T>(table: Record<string, T>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** Answers the same environment. Errors: `invalid` if it is too large. */
export function boundedEnvironment(env: Record<string, string>): Record<string, string> {
  const entries = Object.entries(env);
  if (entries.length > variablesMax)
    throw new AtollError('invalid', `the environment has more than ${variablesMax} variables`);
  const characters = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (characters > environmentCharactersMax)
    throw new AtollError('invalid', `the environment is larger than ${environmentCharactersMax} characters`);
  return env;
}
