import { AtollError } from '../../../base/error.ts';
import { boundedEnvironment, environmentCharactersMax, valueOf } from '../environment.ts';

const pairsMax = 1_000;

/**
 * Sets pairs of names and values on top of `env`. `$NAME` and `${NAME}` in values stand for the value in `env` or
 * `known`, including values set earlier; everything else, even quotes and backslashes, is taken literally.
 */
export function applyEnv(
  env: Record<string, string>,
  args: string[],
  known: Record<string, string>,
): Record<string, string> {
  if (args.length === 0 || args.length % 2 !== 0)
    throw new AtollError('invalid', 'ENV needs pairs of a name and a value');
  if (args.length > pairsMax * 2) throw new AtollError('invalid', `ENV: has more than ${pairsMax} pairs`);
  const result: Record<string, string> = { ...env };
  let unchecked = 0;
  for (let index = 0; index < args.length; index += 2) {
    const name = args[index] ?? '';
    if (!/^[^=\0]+$/.test(name))
      throw new AtollError('invalid', `${name} can't be the name of an environment variable`);
    const value = expand(
      args[index + 1] ?? '',
      variable => valueOf(result, variable) ?? valueOf(known, variable) ?? '',
    );
    result[name] = value;
    // Not after each pair: the look at all variables takes longer than the pair. But values of values soon get long.
    unchecked += name.length + value.length;
    if (unchecked < environmentCharactersMax) continue;
    boundedEnvironment(result);
    unchecked = 0;
  }
  return boundedEnvironment(result);
}

function expand(value: string, lookUp: (name: string) => string): string {
  let characters = 0;
  return value.replace(
    /\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})/g,
    (_, plain: string | undefined, braced: string | undefined) => {
      const text = lookUp(plain ?? braced ?? '');
      characters += text.length;
      if (characters > environmentCharactersMax)
        throw new AtollError(
          'invalid',
          `ENV: what variables stand for is longer than ${environmentCharactersMax} characters`,
        );
      return text;
    },
  );
}
