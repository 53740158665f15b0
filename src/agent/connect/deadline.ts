import { AtollError } from '../../base/error.ts';
import { wireErrorOf } from './code.ts';
import type { Outbox } from './outbox.ts';

/** Ends a stream with `deadline_exceeded` and `text` after `timeoutMs`; undefined: never. `before` runs first. */
export function deadline(outbox: Outbox, timeoutMs: number | undefined, text: string, before?: () => void): void {
  if (timeoutMs === undefined) return;
  const timer = setTimeout(() => {
    before?.();
    outbox.end(wireErrorOf(new AtollError('deadline_exceeded', text)));
  }, timeoutMs);
  const closed = outbox.onClose;
  outbox.onClose = () => {
    clearTimeout(timer);
    closed();
  };
}
