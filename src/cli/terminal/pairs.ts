import { AtollError } from '../../base/error.ts';
import { commandLineDetail } from './arguments.ts';

/** `NAME=VALUE` pairs of an option that may be given several times. Fails with `invalid`. */
export function pairsOf(option: string, texts: string[] = []): Record<string, string> {
  return Object.fromEntries(
    texts.map(text => {
      const at = text.indexOf('=');
      if (at < 1)
        throw new AtollError('invalid', `${option} must be NAME=VALUE, and ${JSON.stringify(text)} is not`, {
          detail: commandLineDetail,
        });
      return [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}
