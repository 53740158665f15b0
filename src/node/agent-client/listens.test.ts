import { expect, test } from 'bun:test';
import type { NetworkNamespace } from '../native/netns.ts';
import { agentListens } from './listens.ts';

/** A namespace whose connections go through these states, one for each look. */
function namespaceOf(connections: ('pending' | 'connected' | 'refused')[][]) {
  const it = { open: 0, closed: 0 };
  const namespace = {
    targets: ['ipv4'],
    connect() {
      const states = connections[Math.min(it.open, connections.length - 1)]!;
      let look = 0;
      return { fd: it.open++, progress: () => states[Math.min(look++, states.length - 1)]! };
    },
    closeSocket: () => void it.closed++,
  } as unknown as NetworkNamespace;
  return { it, namespace };
}
const running = new Promise<void>(() => {});

test('a connection that takes its time is waited for: another one would not take less', async () => {
  const { it, namespace } = namespaceOf([['pending', 'pending', 'pending', 'pending', 'connected']]);
  await agentListens(namespace, running);
  expect(it).toEqual({ open: 1, closed: 1 });
});

test('refusals and connections that nobody answers are tried again', async () => {
  const { it, namespace } = namespaceOf([['refused'], ['refused'], ['pending'], ['connected']]);
  await agentListens(namespace, running);
  expect(it).toEqual({ open: 4, closed: 4 });
});

test('nothing is asked of an agent before it has given its sign', async () => {
  const { it, namespace } = namespaceOf([['connected']]);
  const sign = Promise.withResolvers<void>();
  const listens = agentListens(namespace, running, sign.promise);
  // A window without a look: without the sign, the first look would come after half a second.
  await Bun.sleep(50);
  expect(it.open).toBe(0);
  sign.resolve();
  await listens;
  expect(it).toEqual({ open: 1, closed: 1 });
});

test('an agent whose sign was lost is still found', async () => {
  const { it, namespace } = namespaceOf([['refused'], ['connected']]);
  await agentListens(namespace, running, running);
  expect(it).toEqual({ open: 2, closed: 2 });
});

test('a sandbox that ends is not waited for', async () => {
  const { it, namespace } = namespaceOf([['pending']]);
  await expect(agentListens(namespace, Promise.resolve())).rejects.toThrow('ended before its agent listened');
  expect(it.closed).toBe(it.open);
});
