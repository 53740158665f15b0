import { AtollError } from '../../base/error.ts';
import { libc } from '../native/libc.ts';
import type { NetworkNamespace } from '../native/netns.ts';

/** How long a service may take to accept: only a full accept queue makes a loopback connection wait at all. */
const connectTimeoutMs = 5_000;

/**
 * A connected socket to `port` on the loopback of a sandbox, IPv4 first. The caller owns the descriptor.
 * Answers `unavailable` where nothing listens, and `deadline_exceeded` where the service does not accept.
 */
export async function dial(namespace: NetworkNamespace, port: number, signal?: AbortSignal): Promise<number> {
  const fd = (await attempt(namespace, 'ipv4', port, signal)) ?? (await attempt(namespace, 'ipv6', port, signal));
  if (fd === undefined) throw new AtollError('unavailable', `nothing listens on port ${port} of the sandbox`);
  return fd;
}

async function attempt(namespace: NetworkNamespace, family: 'ipv4' | 'ipv6', port: number, signal?: AbortSignal): Promise<number | undefined> {
  const { fd, progress } = namespace.connect(family, port);
  const deadline = performance.now() + connectTimeoutMs;
  for (let waitMs = 0; ; waitMs = Math.min(waitMs * 2 + 1, 50)) {
    const state = progress();
    if (state === 'connected') return fd;
    const late = performance.now() > deadline;
    if (state === 'refused' || late || signal?.aborted) {
      libc.close(fd);
      if (late) throw new AtollError('deadline_exceeded', `the service on port ${port} does not accept connections`);
      signal?.throwIfAborted();
      return undefined;
    }
    await Bun.sleep(waitMs);
  }
}
