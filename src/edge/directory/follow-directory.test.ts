import { expect, test } from 'bun:test';
import { silentLog } from '../../base/telemetry/log.ts';
import { createJournal } from '../../base/journal.ts';
import { AtollError } from '../../base/error.ts';
import type { DirectoryProtocol, Route, RouteChange } from '../../protocol/directory.ts';
import { followDirectory } from './follow-directory.ts';

const route = (sandboxId: string, executionId: string): Route => ({
  sandboxId,
  executionId,
  nodeId: 'n',
  teamId: 't',
  state: 'running',
  ingress: { trafficAccessToken: null, accessToken: null, maskRequestHost: null, httpsPorts: [], autoResume: false },
});

/** An api whose journal of changes can be replaced: a new process has a new journal. */
function fakeApi() {
  const it = { journal: createJournal<RouteChange>(100), all: [] as Route[], asked: [] as string[], isAway: false };
  const api: DirectoryProtocol = {
    async changes(after, waitMs, signal) {
      if (it.isAway) throw new AtollError('unavailable', 'away');
      const end = it.journal.end();
      if (after?.epoch !== end.epoch) return { all: it.all, changes: [], next: end };
      const { items, next } = await it.journal.read(after, waitMs, signal);
      return { all: null, changes: items, next };
    },
    async find(sandboxId) {
      it.asked.push(sandboxId);
      return null;
    },
    wake: async sandboxId => route(sandboxId, 'woken'),
    way: async () => {
      throw new AtollError('unavailable', 'there is no cluster');
    },
    report: async () => {},
  };
  return { it, api };
}

async function until(holds: () => boolean): Promise<void> {
  for (const deadline = performance.now() + 20_000; !holds();) {
    if (performance.now() > deadline) throw new Error('it did not come to that');
    await Bun.sleep(1);
  }
}

test('what runs is at hand, what was closed is cut before that is said, and the rest is asked for', async () => {
  const { it, api } = fakeApi();
  const closed: string[] = [];
  it.all = [route('a', 'a1')];
  const { directory, stop } = followDirectory(api, ({ executionId }) => closed.push(executionId), silentLog);
  await until(() => !(directory.find('a') instanceof Promise));
  it.journal.append({ kind: 'running', route: route('b', 'b1') });
  await until(() => !(directory.find('b') instanceof Promise));
  it.journal.append({ kind: 'closed', closed: { sandboxId: 'a', executionId: 'a1' } });
  await until(() => it.journal.readUpTo() === 2);
  expect(closed).toEqual(['a1']);
  expect([...directory.running()].map(({ sandboxId }) => sandboxId)).toEqual(['b']);
  it.asked = [];
  expect(await directory.find('a')).toBeUndefined();
  expect(it.asked).toEqual(['a']);
  stop();
});

test('the end of an earlier execution does not hide its successor', async () => {
  const { it, api } = fakeApi();
  const { directory, stop } = followDirectory(api, () => {}, silentLog);
  await until(() => it.asked.length === 0);
  it.journal.append({ kind: 'running', route: route('a', 'a2') });
  it.journal.append({ kind: 'closed', closed: { sandboxId: 'a', executionId: 'a1' } });
  await until(() => !(directory.find('a') instanceof Promise));
  expect(directory.find('a')).toMatchObject({ executionId: 'a2' });
  stop();
});

test('while the api is away what runs goes on, and a new api’s word cuts what has ended meanwhile', async () => {
  const { it, api } = fakeApi();
  const closed: string[] = [];
  it.all = [route('a', 'a1'), route('b', 'b1')];
  const { directory, stop } = followDirectory(api, ({ executionId }) => closed.push(executionId), silentLog);
  await until(() => !(directory.find('a') instanceof Promise));
  it.isAway = true;
  it.journal.append({ kind: 'running', route: route('c', 'c1') });
  await until(() => !(directory.find('c') instanceof Promise));
  expect(directory.find('a')).toMatchObject({ executionId: 'a1' });
  it.journal = createJournal<RouteChange>(100);
  it.all = [route('b', 'b1')];
  it.isAway = false;
  await until(() => closed.length === 2);
  expect(closed.sort()).toEqual(['a1', 'c1']);
  expect(directory.find('b')).toMatchObject({ executionId: 'b1' });
  stop();
});
