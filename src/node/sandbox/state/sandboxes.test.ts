import { expect, test } from 'bun:test';
import type { PausedRecord, RunningRecord } from '../records/record.ts';
import type { Processes } from '../slot/processes.ts';
import { transitions, type After, type Paused, type Running, type SandboxState } from './sandbox-state.ts';
import { Sandboxes } from './sandboxes.ts';

const sandboxId = 's';
const running: Running = {
  kind: 'running',
  sandboxId,
  record: { sandboxId, executionId: 'e1' } as RunningRecord,
  processes: {} as Processes,
  policyInForce: null,
  diskFailed: false,
};
const paused: Paused = { kind: 'paused', sandboxId, record: { sandboxId, executionId: 'e1' } as PausedRecord };

test('the types allow only states that may follow', () => {
  // The compiler rejects these lines if the table of transitions says otherwise.
  const followsOnRunning: After<'running'> extends 'running' | 'pausing' | 'ending' ? true : false = true;
  const pausedFollowsOnRunning: 'paused' extends After<'running'> ? true : false = false;
  const frozenFollowsOnPaused: 'frozen' extends After<'paused'> ? true : false = false;
  const pausingFollowsOnEither: 'pausing' extends After<'running' | 'paused'> ? true : false = false;
  expect([followsOnRunning, pausedFollowsOnRunning, frozenFollowsOnPaused, pausingFollowsOnEither]).toEqual([
    true,
    false,
    false,
    false,
  ]);
  expect(Object.values(transitions).flat()).toContain('gone');
});

test('a sandbox changes only in its turn, from its present state, to one that may follow', async () => {
  const sandboxes = new Sandboxes();
  sandboxes.add(running);
  expect(() => sandboxes.add(paused)).toThrow('added twice');
  const ending = { kind: 'ending', sandboxId, record: running.record, processes: null } as const;
  expect(() => sandboxes.transition(running, ending)).toThrow('out of turn');
  await sandboxes.inTurn(sandboxId, async () => {
    const illegal: SandboxState = paused;
    expect(() => sandboxes.transition(running as never, illegal as never)).toThrow("can't be paused after running");
    expect(() => sandboxes.transition({ ...running }, ending)).toThrow('not its present one');
    expect(sandboxes.transition(running, ending)).toBe(ending);
    expect(sandboxes.get(sandboxId)).toBe(ending);
    sandboxes.remove(ending);
  });
  expect([...sandboxes.all()]).toEqual([]);
});

test('changes of one sandbox come one after the other, also after one that fails; others do not wait', async () => {
  const sandboxes = new Sandboxes();
  const order: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = sandboxes.inTurn('a', async () => {
    await gate.promise;
    order.push('a1');
    throw new Error('failed');
  });
  const second = sandboxes.inTurn('a', async () => void order.push('a2'));
  await sandboxes.inTurn('b', async () => void order.push('b'));
  gate.resolve();
  expect(first).rejects.toThrow('failed');
  await second;
  expect(order).toEqual(['b', 'a1', 'a2']);
});

test('an execution is found where it runs, and where it is paused', () => {
  const sandboxes = new Sandboxes();
  sandboxes.add(running);
  sandboxes.add<Paused>({ ...paused, sandboxId: 'p' });
  expect(sandboxes.requireRunning({ sandboxId, executionId: 'e1' })).toBe(running);
  expect(() => sandboxes.requireRunning({ sandboxId, executionId: 'e2' })).toThrow('does not run on this node');
  expect(sandboxes.findPaused({ sandboxId: 'p', executionId: 'e1' })?.kind).toBe('paused');
  expect(sandboxes.findPaused({ sandboxId, executionId: 'e1' })).toBeUndefined();
  expect([sandboxes.running().length, sandboxes.paused().length, sandboxes.records().length]).toEqual([1, 1, 2]);
});

test('after the end of a node nothing changes its sandboxes but what is asked for', async () => {
  const sandboxes = new Sandboxes();
  sandboxes.add(running);
  const gate = Promise.withResolvers<void>();
  const done: string[] = [];
  const before = sandboxes.inTurn(sandboxId, async () => {
    await gate.promise;
    done.push('asked before');
  });
  // They become due before the end of the node, but their turn comes after it.
  const late = sandboxes.react(sandboxId, async () => void done.push('happened'));
  sandboxes.close();
  gate.resolve();
  await Promise.all([before, late, sandboxes.react(sandboxId, async () => void done.push('happened later'))]);
  await sandboxes.inTurn(sandboxId, async () => void done.push('asked'));
  expect(done).toEqual(['asked before', 'asked']);
});
