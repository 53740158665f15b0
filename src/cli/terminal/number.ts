import { AtollError } from '../../base/error.ts';
import { commandLineDetail } from './arguments.ts';

/** The whole number in an option or operand. Fails with `invalid`. */
export function numberOf(name: string, text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new AtollError('invalid', `${name} must be a whole number, and ${JSON.stringify(text)} is not`, {
    detail: commandLineDetail,
  });
}
