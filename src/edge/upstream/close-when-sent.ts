import type { Upstream } from './upstream.ts';

/** Closes a connection once its server has taken the waiting bytes, or after `withinMs`. */
export function closeWhenSent(upstream: Upstream, withinMs: number): void {
  if (upstream.closed || upstream.sendBuffer.idle) return upstream.close();
  const timer = setTimeout(() => upstream.terminate(), withinMs);
  upstream.user = {
    upstreamData() {},
    upstreamDrained: () => upstream.close(),
    // It may still take the waiting bytes.
    upstreamEnded() {},
    upstreamClosed: () => clearTimeout(timer),
    cut: () => upstream.terminate(),
  };
  upstream.resume();
}
