import { AtollError } from '../../../base/error.ts';

/**
 * Sets pairs of names and values on top of `env`. `$NAME` and `${NAME}` in values stand for what `env` or `known` has,
 * values set before included; everything else, quotes and backslashes too, is taken as it is.
 */
export function applyEnv(env: Record<string, string>, args: string[], known: Record<string, string>): Record<string, string> {
  if (args.length === 0 || args.length % 2 !== 0) throw new AtollError('invalid', 'ENV needs pairs of a name and a value');
  const result = { ...env };
  for (let index = 0; index < args.length; index += 2) {
    const name = args[index] ?? '';
    if (!/^[^=\0]+$/.test(name)) throw new AtollError('invalid', `${name} can't be the name of an environment variable`);
    result[name] = expand(args[index + 1] ?? '', variable => result[variable] ?? known[variable] ?? '');
  }
  return result;
}

function expand(value: string, lookUp: (name: string) => string): string {
  return value.replace(/\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})/g, (_, plain: string | undefined, braced: string | undefined) => lookUp(plain ?? braced ?? ''));
}
