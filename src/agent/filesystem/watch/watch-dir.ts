import { wireErrorOf } from '../../connect/code.ts';
import type { Call } from '../../connect/call.ts';
import { deadline } from '../../connect/deadline.ts';
import { keepAlive } from '../../connect/keepalive.ts';
import type { Outbox } from '../../connect/outbox.ts';
import { openFeed, type WatchSources } from './event-feed.ts';
import type { WatchTarget } from './watch-target.ts';

/** Bytes of events that wait for a client. Beyond this, the client gets the rest by a rescan once it has caught up. */
const waitingBytesMax = 1 << 20;

/** `WatchDir`: everything that happens in a directory, until the client leaves or its deadline is over. */
export async function watchDirectory(
  sources: WatchSources,
  target: WatchTarget,
  call: Call,
  outbox: Outbox,
): Promise<void> {
  const feed = await openFeed(sources, target, {
    give: event => outbox.addMessage({ filesystem: event }),
    hasRoom: () => outbox.bytes < waitingBytesMax,
    fail: error => outbox.end(wireErrorOf(error)),
  });
  outbox.addMessage({ start: {} });
  outbox.onProgress = () => feed.catchUp();
  outbox.onClose = () => feed.close();
  if (!outbox.isOpen) return feed.close();
  deadline(outbox, call.timeoutMs, 'the timeout of the watch is over');
  keepAlive(outbox, call.keepaliveMs, { keepalive: {} });
}
