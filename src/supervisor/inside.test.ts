import { afterEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import { closeFile, streamPair } from '../wire/files.ts';
import { channelOver } from './channel.ts';
import { type FromPart, packed, readFromPart, type ToPart } from './messages.ts';

const children: Bun.Subprocess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) {
    child.kill('SIGKILL');
    await child.exited;
  }
});

/**
 * A process that runs a part, with the test as its supervisor. `start` is the text of the function that starts the
 * part.
 */
async function partOf(start: string) {
  const [own, its] = streamPair();
  const inside = JSON.stringify(join(import.meta.dir, 'inside.ts'));
  const child = Bun.spawn([process.execPath, '-e', `import { runPart } from ${inside}; runPart(${start})`], {
    stdio: ['ignore', 'inherit', 'inherit', its],
  });
  children.push(child);
  closeFile(its);
  const messages: FromPart[] = [];
  let heard = () => {};
  const channel = await channelOver(own);
  channel.listen({
    message(text) {
      const message = readFromPart(text);
      if (message) messages.push(message);
      heard();
    },
    closed: () => heard(),
  });
  /** The next message other than a beat or, with `isBeat`, the next beat. */
  const next = async ({ isBeat = false } = {}) => {
    for (;;) {
      const found = messages.findIndex(({ kind }) => (kind === 'beat') === isBeat);
      if (found >= 0) return messages.splice(found, 1)[0];
      await new Promise<void>(resolve => (heard = resolve));
    }
  };
  const says = (message: ToPart) => channel.send(JSON.stringify(message));
  return { child, next, says, messages, hangUp: () => channel.close() };
}

test('a part sends beats, starts with its settings, takes updates and stops once', async () => {
  const { child, next, says } = await partOf(`async ({ name, keys }, { phase }) => ({
    about: { name, keys: keys.size },
    update: value => phase('updated to ' + value.size),
    async stop() { phase('stops'); await Bun.sleep(20); },
  })`);
  expect(await next({ isBeat: true })).toEqual({ kind: 'beat' });
  says({ kind: 'start', settings: packed({ name: 'a', keys: new Set([1, 2]) }) });
  expect(await next()).toEqual({ kind: 'ready', about: { name: 'a', keys: 2 } });
  says({ kind: 'update', update: packed(new Map([[1, 2]])) });
  expect(await next()).toEqual({ kind: 'phase', text: 'updated to 1' });
  // Everybody gets these signals; the supervisor decides when the part ends.
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM'] as const) child.kill(signal);
  expect(await next({ isBeat: true })).toEqual({ kind: 'beat' });
  says({ kind: 'stop' });
  says({ kind: 'stop' });
  expect(await next()).toEqual({ kind: 'phase', text: 'stops' });
  expect([await child.exited, child.signalCode]).toEqual([0, null]);
});

test('a part that does not start, or not stop, says why and ends', async () => {
  const broken = await partOf(`async () => { throw new Error('no settings') }`);
  broken.says({ kind: 'start', settings: packed({}) });
  expect(await broken.next()).toMatchObject({ kind: 'failed', error: { message: 'no settings' } });
  expect(await broken.child.exited).toBe(1);
  const stuck = await partOf(`async () => ({ about: 1, stop: async () => { throw new Error('stuck') } })`);
  stuck.says({ kind: 'start', settings: packed({}) });
  expect(await stuck.next()).toEqual({ kind: 'ready', about: 1 });
  stuck.says({ kind: 'stop' });
  expect(await stuck.next()).toMatchObject({ kind: 'failed', error: { message: 'stuck' } });
  expect(await stuck.child.exited).toBe(1);
});

test('a part that can’t go on says so and ends', async () => {
  const { child, next, says } = await partOf(`async (_, { fail }) => (fail(new Error('lost')), new Promise(() => {}))`);
  says({ kind: 'start', settings: packed({}) });
  expect(await next()).toMatchObject({ kind: 'failed', error: { message: 'lost' } });
  expect(await child.exited).toBe(1);
});

test('a part ends with its supervisor', async () => {
  const { child, next, hangUp } = await partOf('async () => {}');
  await next({ isBeat: true });
  hangUp();
  expect(await child.exited).toBe(1);
});

test('a part that is told to stop before it has started stops', async () => {
  const { child, next, says } = await partOf('async () => {}');
  await next({ isBeat: true });
  says({ kind: 'update', update: packed(1) });
  says({ kind: 'stop' });
  expect(await child.exited).toBe(0);
});

test('a part’s questions are answered, each by its number, and no answer is kept', async () => {
  const { child, next, says } = await partOf(`async (_, { ask, phase }) => {
    const asked = [ask('one', { a: 1 }), ask('two', null).catch(error => error.code + ' ' + error.message)];
    phase(JSON.stringify(await Promise.all(asked)));
    const answers = [];
    for (let number = 0; number < 100; number++) answers.push(new WeakRef(await ask('much', number)));
    await Bun.sleep(1);
    Bun.gc(true);
    await Bun.sleep(1);
    return { about: answers.filter(answer => answer.deref() !== undefined).length, stop: async () => {} };
  }`);
  says({ kind: 'start', settings: packed({}) });
  expect([await next(), await next()]).toEqual([
    { kind: 'ask', id: 1, what: 'one', value: { a: 1 } },
    { kind: 'ask', id: 2, what: 'two', value: null },
  ]);
  says({ kind: 'answer', id: 2, error: { code: 'conflict', message: 'no' } });
  // Answers a question that nobody asked.
  says({ kind: 'answer', id: 77, value: 'nothing' });
  says({ kind: 'answer', id: 1, value: ['yes'] });
  expect(await next()).toEqual({ kind: 'phase', text: '[["yes"],"conflict no"]' });
  for (let id = 3; id < 103; id++) {
    expect(await next()).toMatchObject({ kind: 'ask', id });
    says({ kind: 'answer', id, value: { text: 'x'.repeat(100) } });
  }
  // Some may still be on the stack.
  expect(((await next()) as { about: number }).about).toBeLessThan(50);
  says({ kind: 'stop' });
  expect(await child.exited).toBe(0);
});
