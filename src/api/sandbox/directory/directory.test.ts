import { expect, test } from 'bun:test';
import { newUuid } from '../../../base/id.ts';
import { SandboxDirectory } from './directory.ts';
import type { SandboxRecord } from '../record.ts';

function scene() {
  const directory = new SandboxDirectory(() => ({ accessToken: 'a', trafficToken: null }));
  const start = directory.changes(null, 0);
  const closed = async () => {
    const { changes } = await directory.changes((await start).next, 0);
    return changes.flatMap(change => (change.kind === 'closed' ? [change.closed.executionId] : []));
  };
  return { directory, closed };
}

/** The part of a sandbox that the directory uses. */
function sandbox(state: SandboxRecord['state'], executionId = newUuid()): SandboxRecord {
  return {
    sandboxId: 'i1',
    executionId,
    nodeId: 'n',
    teamId: 't',
    state,
    network: null,
    autoResume: true,
    autoPauseMemory: true,
  } as SandboxRecord;
}

test('sandboxes that clients can see are found, in the states that the edge knows', () => {
  const { directory } = scene();
  for (const [state, shown] of [
    ['running', 'running'],
    ['snapshotting', 'running'],
    ['moving', 'moving'],
    ['pausing', 'pausing'],
    ['paused', 'paused'],
    ['resuming', 'paused'],
  ] as const) {
    directory.apply(sandbox(state));
    expect(directory.find('i1')).toMatchObject({
      state: shown,
      ingress: { accessToken: 'a', trafficAccessToken: null },
    });
  }
  const { directory: other } = scene();
  for (const state of ['starting', 'killing'] as const) {
    other.apply(sandbox(state));
    expect(other.find('i1')).toBeUndefined();
  }
});

test('connections are cut when an execution stops, once, and not while it goes on', async () => {
  const { directory, closed } = scene();
  const running = sandbox('running');
  directory.apply(running);
  directory.apply({ ...running, state: 'snapshotting' });
  directory.apply(running);
  expect(await closed()).toEqual([]);
  directory.apply({ ...running, state: 'pausing' });
  directory.apply({ ...running, state: 'paused' });
  expect(await closed()).toEqual([running.executionId]);
  const resumed = sandbox('running');
  directory.apply(resumed);
  directory.close(resumed);
  directory.close(resumed);
  expect(await closed()).toEqual([running.executionId, resumed.executionId]);
  expect(directory.size).toBe(0);
});

test('an execution that ended never comes back, and its end does not hit a successor', async () => {
  const { directory, closed } = scene();
  const [old, next] = [sandbox('running'), sandbox('running')];
  directory.apply(old);
  directory.close(old);
  directory.apply(old);
  directory.adopt(old);
  expect(directory.find('i1')).toBeUndefined();
  directory.apply(next);
  directory.close(old);
  expect(directory.find('i1')?.executionId).toBe(next.executionId);
  expect(await closed()).toEqual([old.executionId]);
});

test('a row that is read again does not replace what is already known', () => {
  const { directory } = scene();
  const running = sandbox('running');
  directory.apply(running);
  directory.adopt({ ...running, state: 'paused' });
  expect(directory.find('i1')?.state).toBe('running');
});
