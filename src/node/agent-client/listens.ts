import { agentPort } from '../../protocol/agent.ts';
import { AtollError } from '../../base/error.ts';
import type { NetworkNamespace } from '../native/netns.ts';

/** On an emulated processor, an agent on gVisor needs some seconds, and clients wait for a minute. */
const startTimeoutMs = 45_000;
/**
 * How long a connection attempt may take. On crun the kernel answers at once; gVisor's network is a program, which
 * must first get its turn, and answers nothing before it runs.
 */
const answerTimeoutMs = 100;
/**
 * Pause between two looks at an agent that has given its sign; if it ended and is started again, the looks become
 * rarer.
 */
const pollMs = { first: 2, growth: 1.5, max: 20 } as const;
/**
 * Pause between two looks at an agent that has not: each look takes processor time from it, and a sign can get lost.
 */
const unannouncedMs = 500;

/** Like `connectToAgent`, for callers that have nothing to say to the agent yet. */
export async function agentListens(...[namespace, ...rest]: Parameters<typeof connectToAgent>): Promise<void> {
  namespace.closeSocket(await connectToAgent(namespace, ...rest));
}

/**
 * Waits until the agent in a standby sandbox accepts connections, and answers a connection, which the caller owns.
 * `ended` settles if the sandbox dies first; `announced` settles when a look is worthwhile: at once for an agent that
 * has served before. Errors: `internal` if the sandbox dies, or its agent does not listen in time.
 */
export async function connectToAgent(
  namespace: NetworkNamespace,
  ended: Promise<void>,
  announced: Promise<unknown> = Promise.resolve(),
): Promise<number> {
  let dead = false;
  let isAnnounced = false;
  void ended.then(() => (dead = true));
  const sign = Promise.race([announced, ended]).then(() => (isAnnounced = true));
  const deadline = performance.now() + startTimeoutMs;
  await within(unannouncedMs, sign);
  for (let waitMs: number = pollMs.first; ; waitMs = Math.min(waitMs * pollMs.growth, pollMs.max)) {
    const fd = await attempt(namespace, () => dead);
    if (fd !== undefined) return fd;
    if (dead) throw new AtollError('internal', 'the sandbox ended before its agent listened');
    if (performance.now() > deadline)
      throw new AtollError('internal', 'the agent in the sandbox did not start in time');
    await (isAnnounced ? Bun.sleep(waitMs) : within(unannouncedMs, sign));
  }
}

/** Waits for `sign`, but no longer than `timeoutMs`. */
async function within(timeoutMs: number, sign: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, timeoutMs);
  await Promise.race([sign, promise]).finally(() => clearTimeout(timer));
}

async function attempt(namespace: NetworkNamespace, isDead: () => boolean): Promise<number | undefined> {
  const { fd, progress } = namespace.connect(namespace.targets[0], agentPort);
  const late = performance.now() + answerTimeoutMs;
  while (progress() === 'pending' && performance.now() < late && !isDead()) await Bun.sleep(1);
  if (progress() === 'connected') return fd;
  namespace.closeSocket(fd);
  return undefined;
}
