import { agentPort } from '../../protocol/agent.ts';
import { AtollError } from '../../base/error.ts';
import type { NetworkNamespace } from '../native/netns.ts';

/** On an emulated processor, an agent on gVisor needs some seconds, and clients wait for a minute. */
const startTimeoutMs = 45_000;
/**
 * How long a connection may be under way. On crun the kernel answers at once; gVisor's network is a program, which has
 * to get its turn first, and answers nothing before it is there.
 */
const answerTimeoutMs = 100;
/**
 * Starting takes the agent some milliseconds: looking sooner and more often would take them from it. On a busy machine
 * it takes many, and looks come less and less often.
 */
const pollMs = { first: 6, next: 2, growth: 1.5, max: 20 } as const;

/**
 * Waits until the agent in a standby sandbox accepts connections. `ended` settles when the sandbox dies first. Errors:
 * `internal` where it dies, or its agent does not listen in time.
 */
export async function agentListens(namespace: NetworkNamespace, ended: Promise<void>): Promise<void> {
  let dead = false;
  void ended.then(() => (dead = true));
  const deadline = performance.now() + startTimeoutMs;
  await Bun.sleep(pollMs.first);
  for (let waitMs: number = pollMs.next; ; waitMs = Math.min(waitMs * pollMs.growth, pollMs.max)) {
    if (await connects(namespace, () => dead)) return;
    if (dead) throw new AtollError('internal', 'the sandbox ended before its agent listened');
    if (performance.now() > deadline)
      throw new AtollError('internal', 'the agent in the sandbox did not start in time');
    await Bun.sleep(waitMs);
  }
}

async function connects(namespace: NetworkNamespace, isDead: () => boolean): Promise<boolean> {
  const { fd, progress } = namespace.connect(namespace.targets[0], agentPort);
  try {
    const late = performance.now() + answerTimeoutMs;
    while (progress() === 'pending' && performance.now() < late && !isDead()) await Bun.sleep(1);
    return progress() === 'connected';
  } finally {
    namespace.closeSocket(fd);
  }
}
