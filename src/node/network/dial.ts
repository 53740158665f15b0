import { AtollError } from '../../base/error.ts';
import type { NetworkNamespace, Target } from '../native/netns.ts';

/** How long a service may take to accept: a loopback connection waits only if the accept queue is full. */
const connectTimeoutMs = 5_000;

/**
 * A connected socket to `port` of a sandbox: on its loopback, or on its own address. The caller owns the descriptor.
 * Errors: `unavailable` if nothing listens, `deadline_exceeded` if the service does not accept.
 */
export async function dial(namespace: NetworkNamespace, port: number, signal?: AbortSignal): Promise<number> {
  for (const target of namespace.targets) {
    const fd = await attempt(namespace, target, port, signal);
    if (fd !== undefined) return fd;
  }
  throw new AtollError('unavailable', `nothing listens on port ${port} of the sandbox`);
}

async function attempt(
  namespace: NetworkNamespace,
  target: Target,
  port: number,
  signal?: AbortSignal,
): Promise<number | undefined> {
  const { fd, progress } = namespace.connect(target, port);
  const deadline = performance.now() + connectTimeoutMs;
  for (let waitMs = 0; ; waitMs = Math.min(waitMs * 2 + 1, 50)) {
    const state = progress();
    if (state === 'connected') return fd;
    const late = performance.now() > deadline;
    if (state === 'refused' || late || signal?.aborted) {
      namespace.closeSocket(fd);
      if (late) throw new AtollError('deadline_exceeded', `the service on port ${port} does not accept connections`);
      signal?.throwIfAborted();
      return undefined;
    }
    await Bun.sleep(waitMs);
  }
}
