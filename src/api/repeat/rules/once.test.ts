import { afterAll, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { openStore } from '../../database/database.ts';
import { BusyExecutions } from '../../sandbox/rules/busy.ts';
import { once } from './once.ts';

const { db, ...store } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => store[Symbol.asyncDispose]());
let keys = 0;

/** A process, and how often it did its work. */
function process(replicaId = 'here') {
  const deps = { db, seed: new Uint8Array(32).fill(1), clock: () => 1e15, busy: new BusyExecutions(replicaId) };
  const done: unknown[] = [];
  const ask = (key: string | undefined, asked: unknown = 'a', work?: () => Promise<unknown>, operation = 'create') =>
    once(deps, { teamId: 't', operation, key, asked }, async () => {
      done.push(asked);
      return work ? work() : { answer: done.length };
    });
  return { ask, done, busy: deps.busy };
}

const newKey = () => `key${keys++}`;

test('without a key a request is carried out each time', async () => {
  const { ask } = process();
  expect([await ask(undefined), await ask(undefined)]).toEqual([{ answer: 1 }, { answer: 2 }]);
});

test('a repeated request gets the first answer, from any process, and is not carried out again', async () => {
  const [first, other, key] = [process(), process('there'), newKey()];
  const answer = await first.ask(key);
  expect(await first.ask(key)).toEqual(answer);
  expect(await other.ask(key)).toEqual(answer);
  expect([first.done, other.done]).toEqual([['a'], []]);
});

test('requests and answers can’t be read in the database', async () => {
  await process().ask(newKey(), 'what is asked', async () => 'what is answered');
  const rows = JSON.stringify(await db.selectFrom('repeated_requests').selectAll().execute());
  expect(rows).not.toContain('what is');
});

test('a key belongs to one request of one operation', async () => {
  const { ask, done } = process();
  const key = newKey();
  await ask(key, 'a');
  await expect(ask(key, 'b')).rejects.toMatchObject({ code: 'conflict', detail: 'idempotency_request_mismatch' });
  await ask(key, 'b', undefined, 'delete');
  expect(done).toEqual(['a', 'b']);
});

test('a repetition of a request under way waits for its answer', async () => {
  const { ask, done, busy } = process();
  const [key, go, begun] = [newKey(), Promise.withResolvers<string>(), Promise.withResolvers<void>()];
  const first = ask(key, 'a', () => {
    begun.resolve();
    return go.promise;
  });
  await begun.promise;
  const { has } = busy;
  // It ends only after the second has seen that it is under way.
  busy.has = place => {
    go.resolve('made');
    return has.call(busy, place);
  };
  expect([await ask(key), await first]).toEqual(['made', 'made']);
  expect(done).toEqual(['a']);
});

test.each(['invalid', 'conflict', 'rate_limited', 'unavailable', 'no_space'] as const)(
  'a request that is refused as %s leaves its key free',
  async code => {
    const { ask } = process();
    const key = newKey();
    const refusal = new AtollError(code, 'not now');
    await expect(ask(key, 'a', () => Promise.reject(refusal))).rejects.toBe(refusal);
    expect(await ask(key, 'another request')).toEqual({ answer: 2 });
  },
);

test.each([
  new AtollError('internal', 'broken'),
  new AtollError('canceled', 'the client went away'),
  new AtollError('deadline_exceeded', 'too slow'),
  new AtollError('unavailable', 'the database went away', { mayHaveChanged: true }),
  new Error('a bug'),
])('a request that may have changed something is not carried out again: %s', async error => {
  const { ask, done } = process();
  const key = newKey();
  await expect(ask(key, 'a', () => Promise.reject(error))).rejects.toBe(error);
  await expect(ask(key)).rejects.toMatchObject({ code: 'conflict', detail: 'idempotency_outcome_unknown' });
  expect(done).toHaveLength(1);
});

test('a request that a crash cut off is never carried out again', async () => {
  const key = newKey();
  const cut = process();
  const begun = Promise.withResolvers<void>();
  void cut.ask(key, 'a', () => {
    begun.resolve();
    return new Promise(() => {});
  });
  await begun.promise;
  // The same process after a restart, and another process, for which it counts as gone.
  for (const { ask } of [process('here'), process('there')])
    await expect(ask(key)).rejects.toMatchObject({ detail: 'idempotency_outcome_unknown' });
});
