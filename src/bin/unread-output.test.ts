import { expect, test } from 'bun:test';
import { unreadOutput } from './unread-output.ts';

const failure = (code: string) => Object.assign(new Error(`${code}: write`), { code });

function output() {
  const exits = Promise.withResolvers<{ code: number; said: string }>();
  const said: string[] = [];
  const stderr = { write: (text: string, written: () => void) => void (said.push(text), written()) };
  return { ...unreadOutput(stderr, code => exits.resolve({ code, said: said.join('') })), exited: exits.promise };
}

test('a process whose output nobody reads ends once what it runs elsewhere has ended, and is no failure', async () => {
  const { before, failed, exited } = output();
  const hasEnded = Promise.withResolvers<void>();
  const asked: string[] = [];
  before(async () => {
    asked.push('refuses');
    throw new Error('it is out of reach');
  });
  before(() => (asked.push('ends'), hasEnded.promise));
  before(async () => void asked.push('is over'))();
  failed(failure('EPIPE'));
  // Each further piece fails in a different way.
  failed(failure('ERR_STREAM_DESTROYED'));
  expect(asked).toEqual(['refuses', 'ends']);
  expect(await Promise.race([exited, Promise.resolve('goes on')])).toBe('goes on');
  hasEnded.resolve();
  expect(await exited).toEqual({ code: 0, said: '' });
});

test('an output that can not be written for another reason is a failure that says why', async () => {
  const { failed, exited } = output();
  failed(failure('ENOSPC'));
  expect(await exited).toEqual({ code: 1, said: "atoll: the output can't be written: ENOSPC: write.\n" });
});
