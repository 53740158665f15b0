import { encodeMessage } from './envelope.ts';
import type { Outbox } from './outbox.ts';

/**
 * Sends an empty event after each `intervalMs` of silence, so that nothing between us and the client considers the
 * stream dead.
 */
export function keepAlive(outbox: Outbox, intervalMs: number, keepalive: unknown = { event: { keepalive: {} } }): void {
  const envelope = encodeMessage(keepalive);
  const onTimer = () => {
    if (!outbox.isOpen) return;
    const silentMs = performance.now() - outbox.lastAddedAt;
    if (silentMs >= intervalMs && outbox.bytes === 0) outbox.add(envelope);
    arm(Math.max(intervalMs - silentMs, 0) || intervalMs);
  };
  // One timer per stream, however many events there are: it is set again only when it fires.
  let timer: Timer | undefined;
  const arm = (ms: number) => (timer = setTimeout(onTimer, ms));
  arm(intervalMs);
  const before = outbox.onClose;
  outbox.onClose = () => {
    clearTimeout(timer);
    before();
  };
}
